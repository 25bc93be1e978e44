"""Verification while writes go on: MySQL's count and checksum of a table, and the lake's at the same commit.

MySQL answers in one consistent read, which is the state at some commit boundary between L and H: L is a
checkpoint of the streamer whose transactions MySQL shows before the read begins, H the binlog's end once it has
begun. When the lake is complete up to H, its table is wound back to L and forward again, transaction by
transaction. Equal at one boundary: proven.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from contract import jobs, pipeline_transforms
from contract.checkpoint import Checkpoint
from contract.pipeline import Pipeline
from contract.pipeline_columns import Shown
from contract.pipeline_events import CHANGES_ROWS, dropped
from contract.schema import TableSchema
from contract.sequence import file_number
from contract.status import LakeStatus, TableStatus, parse
from spark.checksum import Total, hashed_by_source, source_sql, total
from spark.errors import LakeError
from spark.lake import Lake
from spark.rewind import Position, Step, steps
from spark.rows import parsed, typed
from spark.schema import OWN, Schemas
from spark.servers import Place
from spark.snapshot import rows_of, shown_of
from spark.source import Source

POLL_SECONDS = 1.0


@dataclass(frozen=True)
class Answer:
    """What MySQL said of a table. `high`: where the binlog ended once the read had begun."""

    schema: TableSchema
    total: Total
    high: Position
    seconds: float

    @property
    def name(self) -> str:
        return f"{self.schema.db}.{self.schema.table}"


@dataclass(frozen=True)
class Finding:
    """The lake's side of it. `boundary`: the GTID of the transaction behind which both are equal (empty: L
    itself); None where they are not. `now`: what MySQL would have for the table as the lake has it now."""

    lake: Total
    boundary: str | None
    now: int
    seconds: float
    reason: str | None = None


@dataclass
class Verification:
    """One check of some tables. `tell` gets lines of progress."""

    spark: SparkSession
    pipeline: Pipeline
    lake: Lake
    source: Source
    low: Checkpoint
    tell: Callable[[str], None] = print
    frames: dict[str, DataFrame] = field(default_factory=dict)

    def ask(self, tables: list[tuple[str, str]]) -> list[Answer]:
        """MySQL's answers. Raises LakeError."""
        if reason := self.source.server.unordered(self.source.row):
            raise LakeError(reason)
        self.source.wait_for(self.low.gtid_set, 60)
        return [self._ask(db, table) for db, table in tables]

    def _ask(self, db: str, table: str) -> Answer:
        for _ in range(3):  # a table whose columns change under the read is read again
            schema, began = self.source.schema(db, table), time.time()
            if schema is None:
                raise LakeError(f"{db}.{table} is no table of the source: check its name")
            shown = shown_of(self.pipeline, schema)
            found, high = self._by_source(shown) if hashed_by_source(shown) else self._by_spark(shown)
            after = self.source.schema(db, table)
            if after is not None and after.shape() == schema.shape():
                self.tell(f"{db}.{table}: {found.rows:,} rows in the source, read in {time.time() - began:.1f} s")
                return Answer(shown.schema, found, high, time.time() - began)
        raise LakeError(f"{db}.{table}: its columns keep changing; verify again when the ALTER TABLEs are through")

    def _by_source(self, shown: Shown) -> tuple[Total, Position]:
        with self.source.consistent() as end:
            found = self.source.row(source_sql(shown, self.pipeline.source.flavor))
        assert found is not None  # an aggregate has one row
        return Total(int(found[0]), int(found[1])), self._place(end)

    def _by_spark(self, shown: Shown) -> tuple[Total, Position]:
        schema = shown.schema
        rows = rows_of(self.spark, self.pipeline, shown.source, ["1 = 1"])  # one statement: one consistent read
        typed_rows = rows.withColumn("_wire", parsed("after", schema.columns)).select(*typed("_wire", schema))
        return total(typed_rows, schema), self._place(self.source.position())

    def _place(self, end: Place) -> Position:
        return self.low.epoch, file_number(end[0]), end[1]

    def wait(self, answers: list[Answer], executed: str, seconds: float) -> LakeStatus:
        """The lake's status once it is complete up to the answers. `executed`: the GTID set that MySQL had after
        them; a binlog that was rotated since has no commit at its end, so the set counts too."""
        high, deadline, told = max(answer.high for answer in answers), time.time() + seconds, 0.0
        while True:
            text = self.lake.text(self.lake.status)
            status = parse(text) if text else None
            if status and self._complete(status, answers, executed, high):
                return status
            at = status.checkpoint.gtid_set if status and status.checkpoint else "nothing yet"
            if time.time() > deadline:
                raise LakeError(
                    f"after {seconds:.0f} s the lake is complete up to {at}, the check needs {executed}: do the "
                    f"streamer and the DAG {self.pipeline.name}.compaction run? (quality.wait_seconds is the limit)"
                )
            if not told:
                jobs.waits_for(executed)
            if time.time() - told > 15:
                self.tell(f"waiting for the lake to be complete up to {executed}; it has {at}")
                told = time.time()
            time.sleep(POLL_SECONDS)

    def _complete(self, status: LakeStatus, answers: list[Answer], executed: str, high: Position) -> bool:
        c = status.checkpoint
        if c is None:
            return False
        if c.epoch != self.low.epoch:
            raise LakeError("the streamer moved to another server during the check: verify again")
        if c.place < high and not status.covers(executed):
            return False
        # A snapshot's rows may be younger than the lake's checkpoint, until that has passed the snapshot's end.
        tables = [status.tables[answer.name] for answer in answers if answer.name in status.tables]
        return all(status.covers(table.snapshot.p1) for table in tables if table.snapshot)

    def compare(self, answer: Answer, status: LakeStatus, schemas: Schemas) -> Finding:
        """Finds the boundary at which the lake's table is what MySQL answered."""
        began = time.time()
        table = status.tables.get(answer.name)
        if table is None or table.version is None:
            reason = None if answer.total == Total() else "the lake does not have the table: run the snapshot DAG"
            return Finding(Total(), "" if reason is None else None, answer.total.rows, 0.0, reason)
        schema = answer.schema
        now = self._frame(schema, table)
        self.frames[answer.name] = now
        lake = {name: kind for name, kind in now.dtypes if name not in OWN}
        mine = self._changes(answer, status)
        if mine is None:
            return _matched(answer, total(now, schema), [], _why(table), began)
        shapes = schemas.all(schema.db, schema.table)
        walk = steps(mine, shapes, schema, lake, self.low.place, answer.high)
        found = _matched(answer, total(now, schema), walk, _why(table), began)
        if table.unequal:
            return replace(found, boundary=None, reason=table.unequal)
        if found.boundary is None and not mine.where("op = 't'").isEmpty():
            return replace(found, reason="the table was truncated while it was checked: verify again")
        return found

    def _frame(self, schema: TableSchema, table: TableStatus) -> DataFrame:
        path = self.lake.table(schema.db, schema.table)
        return self.spark.read.format("delta").option("versionAsOf", str(table.version)).load(path)

    def _changes(self, answer: Answer, status: LakeStatus) -> DataFrame | None:
        """The table's changes of about the low place and later."""
        if status.changes_version is None:
            return None
        low = self.low.place
        changes = self.spark.read.format("delta").option("versionAsOf", str(status.changes_version))
        mine = changes.load(self.lake.changes).where(
            (fn.col("tbl") == answer.name) & (fn.col("db") == answer.schema.db)
        )
        # Said by single fields too, which lets Delta pass by the files that are older.
        mine = mine.where((fn.col("_seq.epoch") > low[0]) | (fn.col("_seq.file") >= low[1]))
        return mine.where(fn.col("_seq.epoch") >= low[0])


def _matched(answer: Answer, last: Total, walk: list[Step], why: str | None, began: float) -> Finding:
    state = last
    for step in walk:
        state = state.minus(step.delta)
    states: list[tuple[Total, str]] = [(state, "")]
    for step in (step for step in walk if step.gtid is not None):
        state = state.plus(step.delta)
        states.append((state, step.gtid or ""))
    for state, gtid in states:
        if state == answer.total:
            return Finding(state, gtid, last.rows, time.time() - began)
    nearest = min(reversed(states), key=lambda known: abs(known[0].rows - answer.total.rows))[0]
    now = answer.total.rows + last.rows - nearest.rows
    return Finding(nearest, None, now, time.time() - began, why)


def _why(table: TableStatus) -> str | None:
    if table.stopped:
        return f"the table is stopped: {table.stopped}"
    return None if table.snapshot else "no snapshot was applied since the table is followed: run the snapshot DAG"


def incomparable(pipeline: Pipeline, db: str, table: str) -> dict[str, Any] | None:
    """The line of the report of a table whose lake is not meant to equal the source; None for others."""
    kinds = sorted(dropped(pipeline.events, db, table) & CHANGES_ROWS)
    if kinds:
        told = f"events in {pipeline.path} leaves out its {', '.join(kinds)} changes, so the lake is another"
    elif pipeline_transforms.chosen(pipeline.transforms, db, table):
        told = f"transforms in {pipeline.path} change or drop its rows, so the lake is another"
    else:
        return None
    facts = ("source_count", "lake_count", "source_checksum", "lake_checksum")
    return {"equal": None, **dict.fromkeys(facts), "reason": f"not compared: {told}"}


def result(answer: Answer, finding: Finding, low: Checkpoint) -> dict[str, Any]:
    """A table's line of the report. Checksums are texts: they exceed what JSON readers keep exactly."""
    return {
        "equal": finding.boundary is not None,
        "source_count": answer.total.rows,
        "lake_count": finding.lake.rows,
        "source_checksum": str(answer.total.sum),
        "lake_checksum": str(finding.lake.sum),
        "frame_rows": finding.now,
        "boundary": finding.boundary or (low.gtid_set if finding.boundary is not None else None),
        "source_seconds": round(answer.seconds, 1),
        "lake_seconds": round(finding.seconds, 1),
        "reason": finding.reason,
    }
