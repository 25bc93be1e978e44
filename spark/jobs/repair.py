"""The repair job: reads from MySQL again what differs in the lake, and stages it; the next compaction puts it in place.

What differs is what each table's last check found, or keys or a range of one table that a person names.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import SparkSession

from contract.chosen_rows import refuse_repair
from contract.counted import counted
from contract.names import quoted
from contract.pipeline import Pipeline
from spark.compaction.compacting import OPTION, take_in
from spark.errors import LakeError
from spark.job import run
from spark.lake.lake import Lake
from spark.mending.choice import Form, Name, blocked, names_of, refusing, source_of, standing, tell
from spark.mending.from_source import Choose, SourceParts
from spark.mending.passing import each, refuse_passed_by
from spark.mending.unfound import Unfound
from spark.merging.parts import Chosen
from spark.proof.differences import Difference, found_last
from spark.proof.reports import numbers

MOST_CHUNKS = 100  # of which each row is asked whether it is in one
OPTIONS = {
    "keys": "keys of one table, as a JSON list; else what the last check found",
    "from": "the first of a range of keys of one table",
    "to": "the last of it",
    "by": "who started it, for the audit table",
    "compact": OPTION,
}


def repair(spark: SparkSession, pipeline: Pipeline, tables: list[str], **given: str) -> dict[str, Any]:
    """Stages what differs of the named tables, or of all; with `compact` the lake has it at the end. Raises LakeError,
    and then stages nothing more; JobFailedError where some of the tables cannot be mended, and the others are."""
    began, given = time.time(), {"keys": "", "from": "", "to": "", **given}
    with refusing():
        refuse_repair(given, tables)
    lake, form = Lake(spark, pipeline), Form.of(given)
    facts: dict[str, Any] = {"p1": "", "parts": {}, "tables": {}, "passed_by": {}}
    passed_by = facts["passed_by"]
    chosen = _named(pipeline, lake, tables, form) if form else _found(spark, pipeline, lake, tables, passed_by)
    if chosen:
        lake.prove_writable()
        with source_of(spark, pipeline, lake, [*chosen], "the repair") as staging:
            unfound = Unfound(spark, lake, bool(form.keys))
            _stage(SourceParts(staging, "repair", given.get("by", ""), unfound), chosen, facts)
    facts["seconds"] = round(time.time() - began, 1)
    facts = take_in(spark, pipeline, facts) if given.get("compact") and chosen else facts
    refuse_passed_by(pipeline, facts)
    return facts


def _stage(parts: SourceParts, chosen: Mapping[Name, Choose], facts: dict[str, Any]) -> None:
    """Into `facts`. A table whose rows cannot be read there is passed by; LakeError where there is no other."""
    staged, refused = each(chosen, lambda name: parts.stage(*name, chosen[name]))
    facts["passed_by"] |= refused
    for name, (part, rows) in staged.items():
        table = ".".join(name)
        facts["p1"], facts["parts"][part.id] = part.p1, table  # the one that was read last
        facts["tables"][table] = {"part": part.told, "read": rows, **parts.unfound.facts.get(table, {})}


def _named(pipeline: Pipeline, lake: Lake, tables: list[str], form: Form) -> dict[Name, Choose]:
    [name] = names_of(pipeline, tables)
    if reason := blocked(lake, standing(lake, [name]), name):
        raise LakeError(reason)
    return {name: form.choose}


def _found(
    spark: SparkSession, pipeline: Pipeline, lake: Lake, tables: list[str], passed_by: dict[str, str]
) -> dict[Name, Choose]:
    """What the tables' last checks found. A table that waits for a snapshot is `passed_by` where it was named, or
    something was found of it."""
    named = names_of(pipeline, tables)
    status, chosen, found = standing(lake, named), dict[Name, Choose](), found_last(spark, lake)
    for name in named or [(one.db, one.table) for one in status.tables.values()]:
        if not pipeline.tables.match(*name):  # left out since; the status lists it until the next compaction
            continue
        differences = found.get(name, [])
        reason = blocked(lake, status, name) if differences or tables else None
        if reason:
            tell(f"passed by: {reason}")
            passed_by[".".join(name)] = reason
        elif differences:
            chosen[name] = _choosing(differences)
        elif tables:
            tell(f"{'.'.join(name)}: its last check found no difference, so nothing is repaired")
    if not (chosen or passed_by):
        last = max(numbers(lake), default=None)
        when = f", the one of {datetime.fromtimestamp(last / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC," if last else ""
        told = f"no table's last check{when} found a difference that can be repaired"
        tell(f"{told}. A check that failed on its way found none: its message says what to do")
    return chosen


def _choosing(found: Sequence[Difference]) -> Choose:
    keys = tuple(dict.fromkeys(one.key for one in found if one.key))
    chunks = [one for one in found if one.lake_where and one.source_where]
    if why := _why_all(keys, len(chunks)):
        whole = Chosen(f"all rows, since {why}")
        return lambda shown: whole
    told = [counted(len(keys), "key")] if keys else []
    told += [counted(len(chunks), "chunk")] if chunks else []
    lake, source = _either(one.lake_where for one in chunks), _either(one.source_where for one in chunks)
    chosen = Chosen(f"{' and '.join(told)} that the last check found", lake, source, keys or None)
    anew = Chosen("all rows, since its key is another one than the last check's")
    return lambda shown: chosen if _of_key(found, shown.schema.key) else anew


def _why_all(keys: Iterable[str], chunks: int) -> str | None:
    if chunks > MOST_CHUNKS:
        return f"{chunks:,} chunks differ"
    keyless = any(None in json.loads(key).values() for key in keys)
    return "the key of a row that differs has no value in the lake" if keyless else None


def _of_key(found: Iterable[Difference], key: Sequence[str]) -> bool:
    """Whether the table had the key then."""
    return all(
        json.loads(one.key).keys() == {*key} if one.key else quoted(key[0]) in (one.lake_where or quoted(key[0]))
        for one in found
    )


def _either(conditions: Iterable[str | None]) -> str | None:
    return " or ".join(f"({where})" for where in dict.fromkeys(conditions)) or None


if __name__ == "__main__":
    run("repair", repair, OPTIONS)
