"""A pipeline's transforms at the records of the stream.

In: the records of a rows event, as the envelope made them. Out: those that are left, as the transforms left them. Only
records of tables that a transform chooses are taken apart. Raises TransformError where one fails that is to stop.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import structlog

from contract import fingerprint, names, pipeline_transforms, transform_rows, transforms
from contract.dead_letter import letter
from contract.pipeline import Pipeline
from contract.pipeline_events import dropped
from contract.pipeline_file import place_of
from contract.schema import TableSchema
from contract.transform_event import Event
from contract.transforms import Chain, Loaded, TransformFaultError, TransformLoadError, json_text
from streamer.delivery_errors import TransformError
from streamer.outgoing.record import Outgoing

log = structlog.get_logger("streamer")
HINT = (
    "Mend it and start again: the stream goes on with this change, nothing after it was passed on. Or set its on_error "
    "to dead_letter or pass."
)


class Transforms:
    """Runs the scripts' own lines, once. `rules`: the fingerprint of all by which rows are shown; `shown_by`: one by
    one; `sends`: of all by which changes become records. `counts`: since the start, by (`db.table`, outcome):
    `changed`, `dropped`, `removed`, `dead_letter`, `passed`.
    Raises TransformError for a script or function that cannot be used."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._dead = names.dead_letter_topic(pipeline)
        self._loaded = _loaded(pipeline)
        steps = [step for step, _ in self._loaded]
        self.rules, self.shown_by = fingerprint.of(pipeline, steps), fingerprint.rules(pipeline, steps)
        self.sends = fingerprint.of_sending(pipeline, self.rules, list(_code(pipeline)))
        self.counts: Counter[tuple[str, str]] = Counter()

    def follow(self, pipeline: Pipeline) -> None:
        """With other tables than until now, whose topics are no place for changes of others."""
        self._pipeline = pipeline

    def chain(self, schema: TableSchema) -> Chain | None:
        """None for a table that no transform chooses."""
        if not pipeline_transforms.chosen(self._pipeline.transforms, schema.db, schema.table):
            return None
        return Chain(self._pipeline, schema, self._loaded)

    def applied(self, chain: Chain, records: list[Outgoing]) -> list[Outgoing]:
        return [made for record in records for made in self._one(chain, record)]

    def _one(self, chain: Chain, record: Outgoing) -> list[Outgoing]:
        """The change, if it is left, behind the delete of its row, if that has left the table."""
        assert record.value is not None
        envelope = json.loads(record.value)
        source = envelope["source"]
        name = f"{source['db']}.{source['table']}"
        passed, failed = chain.passed, None
        try:
            changed = chain.apply(_event(record, envelope))
            if chain.passed != passed:
                failed = chain.fault
            stays = changed is not None and changed.topic == chain.topic
            gone = None if stays or self._kept(source) else self._left(chain, record)
        except TransformFaultError as fault:
            return [self._failed(fault, record, json.loads(record.value))]
        made = None if changed is None else _record(record, envelope, changed)
        outcome = "removed" if gone else "passed" if failed else "dropped" if made is None else "changed"
        self.counts[name, outcome] += 1
        if failed is not None:
            self._told(failed, name, source, "passed unchanged")
        return [one for one in (gone, made) if one is not None]

    def _kept(self, source: dict[str, Any]) -> bool:
        """Whether rows of the table stay, since its deletes are left out."""
        return "delete" in dropped(self._pipeline.events, source["db"], source["table"])

    def _left(self, chain: Chain, record: Outgoing) -> Outgoing | None:
        envelope = json.loads(record.value or b"")
        gone = transform_rows.left(chain, _event(record, envelope))
        if gone is None:
            return None
        envelope["op"] = gone.op
        return _record(record, envelope, gone)

    def _failed(self, fault: TransformFaultError, record: Outgoing, envelope: dict[str, Any]) -> Outgoing:
        source = envelope["source"]
        name = f"{source['db']}.{source['table']}"
        if fault.on_error == "stop":
            place = place_of(self._pipeline.path, "transforms", fault.rule)
            what = f"a change of {name} ({transforms.facts(source)})"
            raise TransformError("transforming", what, f"{place}: {fault.name}: {fault.cause}", HINT)
        self.counts[name, "dead_letter"] += 1
        self._told(fault, name, source, "sent to the dead letter topic")
        value = letter(
            self._pipeline.name, "transform", fault.cause, fault.name, record.topic, envelope, value=envelope
        )
        return Outgoing(self._dead, record.key, value, event=False)

    def _told(self, fault: TransformFaultError, table: str, source: dict[str, Any], what: str) -> None:
        place = {name: source[name] for name in ("gtid", "file", "pos", "row")}
        log.warning(f"a transform failed: {what}", table=table, by=fault.name, error=fault.cause, **place)

    def as_dict(self) -> dict[str, dict[str, int]]:
        """As `/status` shows it."""
        tables: dict[str, dict[str, int]] = {}
        for (name, outcome), count in sorted(self.counts.copy().items()):
            tables.setdefault(name, {})[outcome] = count
        return tables


def refuse_taken(pipeline: Pipeline, topics: Iterable[str]) -> None:
    """`topics`: those that transforms sent changes into. Raises TransformError where the lake would read one of them as
    a table's."""
    for topic in sorted(topics):
        if names.is_event_topic(pipeline, topic):
            raise TransformError(
                "following other tables than until now with",
                f"pipeline {pipeline.name}",
                f"a transform has sent changes of other tables into {topic}, which would be a table's topic",
                "Leave that table out, or let the transform send them elsewhere and delete the topic.",
            )


def _loaded(pipeline: Pipeline) -> list[Loaded]:
    try:
        return [(step, step.load()) for step in transforms.steps(pipeline)]
    except TransformLoadError as error:
        what = f"of pipeline {pipeline.name}"
        raise TransformError("loading the transforms", what, f"{error.place}: {error.cause}", error.fix) from None


def _code(pipeline: Pipeline) -> Iterator[str]:
    """The modules that rules name, loaded by now; of what is compiled nothing."""
    for rule in pipeline.transforms:
        for path in filter(None, (rule.function, *rule.helpers.values())):
            with suppress(OSError, TypeError, KeyError):
                yield inspect.getsource(sys.modules[path.rpartition(".")[0]])


def _event(record: Outgoing, envelope: dict[str, Any]) -> Event:
    source = envelope["source"]
    key = None if record.key is None else json.loads(record.key)
    images = envelope["before"], envelope["after"]
    return Event(envelope["op"], source["db"], source["table"], key, *images, record.topic, source)


def _record(record: Outgoing, envelope: dict[str, Any], changed: Event) -> Outgoing:
    envelope["before"], envelope["after"] = changed.before, changed.after
    key = record.key  # its very bytes where it is the same
    if changed.key != (None if key is None else json.loads(key)):
        key = None if changed.key is None else json_text(changed.key)
    return Outgoing(changed.topic, key, json_text(envelope))
