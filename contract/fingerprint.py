"""Short texts that tell whether two parts show rows by the same rules, and whether two starts send the same records.

They stand in each checkpoint, with a hash of each rule. Nobody finds the secret of the hashes by them who has not
guessed the secret before.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Sequence
from typing import Any

from contract.pipeline import Pipeline
from contract.pipeline_columns import ALL
from contract.pipeline_events import CHANGES_ROWS, Kind
from contract.shown_by import EVERY, Rule, table_of
from contract.transforms import Step

DIGITS = 16


def of(pipeline: Pipeline, steps: list[Step]) -> str:
    """By which rows are shown: columns, masks, keys, transforms, and which changes of them are left out. `steps`: the
    transforms, with the text of each script."""
    columns = pipeline.columns
    rules: dict[str, Any] = {
        "columns": columns.model_dump(mode="json", exclude={"secret"}),
        "keys": [rule.model_dump(mode="json") for rule in pipeline.keys],
        "secret": _secret(pipeline),
        "transforms": [
            [rule.tables, step.name, step.text, step.helpers]
            for rule, step in zip(pipeline.transforms, steps, strict=True)
        ],
    }
    if left_out := _left_out(pipeline):
        rules["events"] = left_out
    return _digest(rules)


def of_sending(pipeline: Pipeline, rules: str, code: Sequence[str] = ()) -> str:
    """By which of the changes become records, and into which topic and partition each of them goes. `rules`: as `of`
    tells them; `code`: the text of functions that scripts or transforms name. Tables are left out: a checkpoint names
    them."""
    asked = pipeline.records
    sending: dict[str, Any] = {
        "rules": rules,
        "code": [hashlib.sha256(text.encode()).hexdigest() for text in code],
        "on_error": [rule.on_error for rule in pipeline.transforms],
        "events": [rule.model_dump(mode="json") for rule in pipeline.events],
        "topic": pipeline.kafka.topic,
        "partition_by": asked.partition_by,
    }
    if asked.oversized is not None:  # which records are too large goes by all that makes them larger
        sending["limit"] = [
            pipeline.kafka.max_message_bytes, len(asked.headers), asked.transactions, pipeline.source.statements,
        ]  # fmt: skip
    return _digest(sending)


def rules(pipeline: Pipeline, steps: list[Step]) -> tuple[Rule, ...]:
    """One by one, in their order."""
    columns, found = pipeline.columns, list[tuple[tuple[str, ...], Any]]()
    if columns.include != (ALL,):
        found.append(((EVERY,), ["include", columns.include]))
    found += [((table_of(name),), ["exclude", name]) for name in columns.exclude]
    for mask in columns.masks:
        secret = _secret(pipeline) if mask.mask == "hash" else ""
        found.append((tuple(map(table_of, mask.columns)), ["mask", mask.model_dump(mode="json"), secret]))
    found += [(key.tables, ["key", key.model_dump(mode="json")]) for key in pipeline.keys]
    for rule, step in zip(pipeline.transforms, steps, strict=True):
        found.append((rule.tables, ["transform", step.name, step.text, step.helpers]))
    found += [(tables, ["events", kinds]) for tables, kinds in _left_out(pipeline)]
    return tuple(Rule(tables=tables, mark=_digest(what)) for tables, what in found)


def _left_out(pipeline: Pipeline) -> list[tuple[tuple[str, ...], list[Kind]]]:
    """Of which tables which changes of rows are left out: no record brings back what was."""
    found = [(rule.tables, sorted(CHANGES_ROWS.intersection(rule.drop))) for rule in pipeline.events]
    return [(tables, kinds) for tables, kinds in found if kinds]


def _secret(pipeline: Pipeline) -> str:
    return hmac.new(pipeline.columns.key(), b"headrace", hashlib.sha256).hexdigest()


def _digest(what: Any) -> str:
    return hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:DIGITS]
