"""The backfill job: makes a table, a range of its key, or the rows that changed in some time anew, out of `_changes`,
out of Kafka, or out of MySQL, and stages them; the next compaction puts them in their place. The rows are the same
whichever it was.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from pyspark.sql import SparkSession

from contract.chosen_rows import refuse_backfill
from contract.counted import counted
from contract.pipeline import Pipeline
from contract.status import LakeStatus
from spark.compaction.compacting import OPTION, take_in
from spark.errors import LakeError
from spark.evolution.renames import in_lake
from spark.job import run
from spark.kafka.broker import Broker
from spark.lake.lake import Lake
from spark.lake.owner import refuse_others
from spark.mending.choice import Form, Name, blocked, names_of, refusing, shown_in, source_of, standing
from spark.mending.from_source import Choose, SourceParts
from spark.mending.passing import each, refuse_passed_by
from spark.mending.rebuilt import Rebuild
from spark.mending.unfound import Unfound
from spark.merging.parts import CHANGES, KAFKA, MYSQL, Chosen, Part

SOURCES = (CHANGES, KAFKA, MYSQL)
OPTIONS = {
    "source": f"where the rows come from: {', '.join(SOURCES)}",
    "keys": "keys of one table, as a JSON list; else all rows",
    "from": "the first of a range of keys of one table",
    "to": "the last of it",
    "since": "the rows that changed at this time or later, ISO 8601 with its zone",
    "until": "and before this time",
    "by": "who started it, for the audit table",
    "compact": OPTION,
}


def backfill(spark: SparkSession, pipeline: Pipeline, tables: list[str], **given: str) -> dict[str, Any]:
    """Stages the rows of the named tables; with `compact` the lake has them at the end. Raises LakeError, and then
    stages nothing more; JobFailedError where some of the tables cannot be had, and the others are."""
    began, given = time.time(), {**dict.fromkeys(OPTIONS, ""), **given}
    with refusing():
        between = refuse_backfill(given, tables)
    form, source = Form.of(given), given["source"] or CHANGES
    if source not in SOURCES:
        raise LakeError(f"source {source!r} is none: choose {', '.join(SOURCES)}")
    names = names_of(pipeline, tables)
    lake = Lake(spark, pipeline)
    refuse_others(lake, Broker(pipeline).checkpoint)
    status = standing(lake, names)
    for name in names:
        if reason := blocked(lake, status, name, from_source=source == MYSQL):
            raise LakeError(reason)
    lake.prove_writable()
    work = Backfill(spark, pipeline, lake, status, source, given["by"])
    facts = work.run(names, form, between)
    facts = {"source": source, **facts, "seconds": round(time.time() - began, 1)}
    facts = take_in(spark, pipeline, facts) if given["compact"] else facts
    refuse_passed_by(pipeline, facts)
    return facts


class Backfill:
    """One run."""

    def __init__(
        self, spark: SparkSession, pipeline: Pipeline, lake: Lake, status: LakeStatus, source: str, by: str
    ) -> None:
        self.spark, self.pipeline, self.lake, self.status = spark, pipeline, lake, status
        self.source, self.by, self.unfound = source, by, Unfound(spark, lake, asked=False)
        self.schemas = in_lake(lake, Broker(pipeline).schemas())

    def run(self, names: list[Name], form: Form, between: tuple[datetime, datetime] | None) -> dict[str, Any]:
        """The report's facts. A table that cannot be had is passed by; LakeError where there is no other."""
        self.unfound.asked = bool(form.keys)
        with self._staging(names, form, between) as stage:
            staged, refused = each(names, stage)
        parts = list(staged.values())
        told = {".".join(part.name): part.told for part in parts}
        facts = {name: {"part": part, **self.unfound.facts.get(name, {})} for name, part in told.items()}
        return {
            "p1": parts[-1].p1,  # the one that was read last
            "parts": {part.id: ".".join(part.name) for part in parts},
            "tables": facts,
            "passed_by": refused,
        }

    @contextmanager
    def _staging(
        self, names: list[Name], form: Form, between: tuple[datetime, datetime] | None
    ) -> Iterator[Callable[[Name], Part]]:
        """What stages a table. It raises LakeError; TableError where that is about the table alone."""
        if self.source != MYSQL:
            yield lambda name: self._rebuilt(name, form, between)
            return
        chosen = self._chosen(self._rebuild(names[0]), form, between) if between else None
        choose: Choose = form.choose if chosen is None else lambda shown: chosen
        with source_of(self.spark, self.pipeline, self.lake, names, "the backfill") as staging:
            parts = SourceParts(staging, "backfill", self.by, self.unfound)
            yield lambda name: parts.stage(*name, choose)[0]

    def _rebuilt(self, name: Name, form: Form, between: tuple[datetime, datetime] | None) -> Part:
        rebuild = self._rebuild(name)
        return rebuild.stage(self._chosen(rebuild, form, between))

    def _rebuild(self, name: Name) -> Rebuild:
        source = CHANGES if self.source == MYSQL else self.source
        return Rebuild(self.spark, self.lake, self.status, self.schemas, name, source, self.by, self.unfound)

    def _chosen(self, rebuild: Rebuild, form: Form, between: tuple[datetime, datetime] | None) -> Chosen:
        if between is None:
            return form.choose(shown_in(rebuild.shape))
        keys = rebuild.keys(*between)
        told = f"{counted(len(keys), 'row')} that changed from {between[0].isoformat()} to {between[1].isoformat()}"
        return Chosen(told, keys=keys)


if __name__ == "__main__":
    run("backfill", backfill, OPTIONS)
