"""Verification while writes go on: the source's counts and checksums of a table's chunks, the lake's at one commit.

The source answers in consistent reads, each the state at some commit boundary between L and H: L is behind all that it
shows for certain when the read begins, H the binlog's end once it has begun. When the lake is complete up to H, its
table is wound back to L and forward again, transaction by transaction. Equal at one boundary: proven. Where a chunk is
equal at none, its rows are read and compared in the same way, and then their columns (proof/pinning.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from contract import pipeline_transforms
from contract.checkpoint import Checkpoint
from contract.patterns import any_matches
from contract.pipeline import Pipeline
from contract.pipeline_events import CHANGES_ROWS, dropped
from contract.status import LakeStatus, TableStatus, parse
from contract.steps import SNAPSHOT_TABLE
from spark.checksum import Total, totals
from spark.errors import LakeError, PassingError
from spark.lake import Lake
from spark.proof.altered import altered
from spark.proof.answer import Answer, Opened, moment
from spark.proof.boundary import Match, match, relevant
from spark.proof.differences import Difference, found_last
from spark.proof.kept import Kept
from spark.proof.pinning import CHUNKS, Pinning, unopened
from spark.proof.reading import Reading
from spark.result import for_a_person, tell_wait
from spark.rewind import Past, Position, Step
from spark.schema import OWN, Schemas, landed_otherwise
from spark.source import Source
from spark.stopped import Name

POLL_SECONDS = 1.0
LACKS = f"the lake does not have the table: {SNAPSHOT_TABLE}"
NO_SNAPSHOT = f"not yet snapshotted: none was applied since the table is followed: {SNAPSHOT_TABLE}"
ALTERED = "it was altered since the check before this one read some of it: verify again"
# Asked for behind each wait: the lake may have changes by then that are written by a shape of after the check's begin.
Shapes = Callable[[], Schemas]


@dataclass(frozen=True)
class Finding:
    """The lake's side of an answer. `boundary`: the GTID of the transaction behind which the last of its reads is equal
    (empty: L itself); None where one is not. `now`: what the source would have for the table as the lake has it now;
    None of a sample. `wrong`: the chunks that differ. `doubts`: what speaks against the table though it is equal."""

    lake: Total
    boundary: str | None
    now: int | None
    seconds: float
    reason: str | None = None
    wrong: frozenset[int] = frozenset()
    doubts: tuple[str, ...] = ()


@dataclass
class Verification:
    """One check of some tables. `tell` gets lines of progress. `keeps`: whether it keeps its reads. `compact` is
    called while it waits for a compaction. `lost`: the tables of which it could not tell, and another check can.
    `altered`: where each table was last altered, as the lake knew behind the last wait."""

    spark: SparkSession
    pipeline: Pipeline
    lake: Lake
    source: Source
    low: Checkpoint
    tell: Callable[[str], None] = print
    keeps: bool = True
    compact: Callable[[], None] | None = None
    frames: dict[str, DataFrame] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    altered: dict[Name, Position] = field(default_factory=dict)
    reading: Reading = field(init=False)

    def __post_init__(self) -> None:
        kept = Kept.open(self.lake, self.low, self.keeps)
        self.reading = Reading(self.spark, self.pipeline, self.source, self.low.epoch, kept, self.tell)

    def ask(self, tables: list[tuple[str, str]]) -> list[Answer]:
        """The source's answers. Raises LakeError."""
        if reason := self.source.server.unordered(self.source.row):
            raise LakeError(reason)
        self.source.wait_for(self.low.gtid_set, 60)
        self.reading.found = found_last(self.spark, self.lake)
        self._drop_altered(tables)
        answers = [self.reading.ask(db, table) for db, table in tables]
        self.low = self.reading.kept.low  # of a check that did not end, which may be earlier
        self.reading.kept.save()
        return answers

    def _drop_altered(self, tables: list[tuple[str, str]]) -> None:
        """What was read of a table before a statement that the lake knows of (of one that it does not know of yet, see
        `compare`), and of one that may change without any."""
        text, places = self.lake.text(self.lake.status), altered(self.lake)
        stale = {name for name, table in parse(text).tables.items() if table.stale} if text else set[str]()
        for db, table in tables:
            name = f"{db}.{table}"
            if name in stale or any_matches(self.pipeline.tables.cascades, db, table):
                self.reading.kept.drop(name)
            elif (place := places.get((db, table))) is not None:
                self.reading.kept.drop_before(name, place)

    def wait(self, names: Sequence[str], high: Position, executed: str, seconds: float) -> LakeStatus:
        """The lake's status once it is complete up to the place. `executed`: the GTID set that the source had after it;
        a binlog that was rotated since has no commit at its end, so the set counts too. Raises LakeError."""
        deadline, told, last = time.time() + seconds, 0.0, ""
        while True:
            text = self.lake.text(self.lake.status)
            status = parse(text) if text else None
            if status and self._complete(status, names, executed, high):
                self.altered = altered(self.lake)
                return status
            at = status.checkpoint.gtid_set if status and status.checkpoint else "nothing yet"
            if time.time() > deadline:
                raise PassingError(
                    f"after {seconds:.0f} s the lake is complete up to {at}, the check needs {executed}: do the "
                    f"streamer and the DAG {self.pipeline.name}.compaction (or `headrace compact "
                    f"{self.pipeline.path}`) run? quality.wait_seconds is the limit"
                )
            if not told:
                self._begin_wait(executed, made=status is not None)
            if at != last and time.time() - told > 15:
                self.tell(f"waiting for a compaction to complete the lake up to {executed}; it has {at}{self._by()}")
                told, last = time.time(), at
            if self.compact is not None:
                self.compact()
            time.sleep(POLL_SECONDS)

    def _begin_wait(self, executed: str, made: bool) -> None:
        """Raises LakeError where nobody but a person could start what is waited for, and there is no lake yet."""
        if self.compact is None and not made and for_a_person():
            raise LakeError(
                f"{self.lake.root} has no lake yet, and no compaction was ever there to make one: add --compact, or "
                f"start `headrace compact {self.pipeline.path} --loop`, then verify again"
            )
        tell_wait(executed)

    def _by(self) -> str:
        """By what, where it is not this check itself."""
        if self.compact is not None:
            return ""
        loop, dag = f"`headrace compact {self.pipeline.path} --loop`", f"{self.pipeline.name}.compaction"
        return f". That is made by {loop}, the DAG {dag}, or this check's --compact"

    def _complete(self, status: LakeStatus, names: Sequence[str], executed: str, high: Position) -> bool:
        c = status.checkpoint
        if c is None:
            return False
        if c.epoch != self.low.epoch:
            raise PassingError("the streamer moved to another server during the check: verify again")
        if c.place < high and not status.covers(executed):
            return False
        # A snapshot's rows may be younger than the lake's checkpoint, until that has passed the snapshot's end.
        tables = [status.tables[name] for name in names if name in status.tables]
        return all(status.covers(table.snapshot.p1) for table in tables if table.snapshot)

    def compare(self, answer: Answer, status: LakeStatus, schemas: Schemas) -> Finding:
        """Finds for each read the boundary at which the lake's table is what the source answered."""
        began = time.time()
        table = status.tables.get(answer.name)
        if table is None or table.version is None:
            reason = None if answer.total == Total() else LACKS
            return Finding(Total(), "" if reason is None else None, answer.total.rows, 0.0, reason)
        now = self.frame(answer, table)
        self.frames[answer.name] = now
        rows = now if answer.chosen is None else now.where(answer.split.lake_where(answer.chosen))
        last = totals(rows, answer.schema, fn.expr(answer.split.number()))
        past = self.past(answer, status, schemas, now)
        steps = past.steps(answer.high, answer.split.number) if past else []
        found = replace(found_of(answer, last, steps, why(table), began), doubts=_doubts(table, answer))
        if (place := self.altered.get((table.db, table.table))) is not None and answer.older_than(place):
            self.lost.add(answer.name)
            return replace(found, boundary=None, reason=ALTERED)
        if table.unequal:
            return replace(found, boundary=None, reason=table.unequal)
        if found.wrong and (told := landed_otherwise(answer.schema, dict(now.dtypes))):
            return replace(found, reason=told)
        if found.wrong and past and (lost := past.lacks()):
            self.lost.add(answer.name)
            return replace(found, reason=f"{lost} while it was checked: verify again")
        return found

    def pin(self, wrong: Sequence[tuple[Answer, Finding]], shapes: Shapes, seconds: float) -> list[Difference]:
        """The rows that differ in the chunks that do, and the chunks of which no rows can be told."""
        opened = [self.reading.open(answer, sorted(finding.wrong)[:CHUNKS]) for answer, finding in wrong]
        known = [one for one in opened if one is not None]
        found: list[Difference] = []
        try:
            names, high = [one.answer.name for one in known], max((one.high for one in known), default=self.low.place)
            status = self.wait(names, high, self.source.executed(), seconds)
        except LakeError as error:
            self.tell(f"which rows differ cannot be told: {error}")
            opened = [None] * len(opened)
        schemas = shapes()
        for (answer, finding), one in zip(wrong, opened, strict=True):
            found += self._pinned(one, status, schemas) if one else []
            found += unopened(answer, finding.wrong - set(one.numbers if one else ()))
        for one in known:
            one.rows.unpersist()
        return found

    def _pinned(self, opened: Opened, status: LakeStatus, schemas: Schemas) -> list[Difference]:
        now = self.frame(opened.answer, status.tables[opened.answer.name])
        return Pinning.of(opened, now, self.past(opened.answer, status, schemas, now)).differences()

    def frame(self, answer: Answer, table: TableStatus) -> DataFrame:
        """The lake's table as the status means it."""
        path = self.lake.table(answer.schema.db, answer.schema.table)
        return self.spark.read.format("delta").option("versionAsOf", str(table.version)).load(path)

    def past(self, answer: Answer, status: LakeStatus, schemas: Schemas, now: DataFrame) -> Past | None:
        """The table's changes of about the low place and later."""
        if status.changes_version is None:
            return None
        low, schema = self.low.place, answer.schema
        changes = self.spark.read.format("delta").option("versionAsOf", str(status.changes_version))
        mine = changes.load(self.lake.changes).where((fn.col("tbl") == answer.name) & (fn.col("db") == schema.db))
        # Said by single fields too, which lets Delta pass by the files that are older.
        mine = mine.where((fn.col("_seq.epoch") > low[0]) | (fn.col("_seq.file") >= low[1]))
        mine = mine.where(fn.col("_seq.epoch") >= low[0])
        lake = {name: kind for name, kind in now.dtypes if name not in OWN}
        return Past(mine, schemas.all(schema.db, schema.table), schema, lake, low)


def found_of(
    answer: Answer, last: dict[Any, Total], steps: Sequence[Step], why: str | None, began: float = 0.0
) -> Finding:
    """`last`: the lake's totals by chunk; `steps`: the changes since L."""
    alone = _by_group(steps)
    matches = [
        match(read, last, alone.get(next(iter(read.totals)), []) if len(read.totals) == 1 else relevant(read, steps))
        for read in answer.reads
    ]
    lake, now = Total(), 0
    for read, found in zip(answer.reads, matches, strict=True):
        for number, state in found.states.items():
            lake = lake.plus(state)
            now += read.totals[number].rows + last.get(number, Total()).rows - state.rows
    wrong = frozenset(number for found in matches for number in found.wrong)
    boundary = None if wrong else _last(answer, matches)
    rows = now if answer.chosen is None else None
    return Finding(lake, boundary, rows, time.time() - began, why if wrong else None, wrong)


def _doubts(table: TableStatus, answer: Answer) -> tuple[str, ...]:
    """Told where the table is equal, which ends a mark that somebody else wrote it (foreign.py), and no other one."""
    foreign = table.foreign.reason if table.foreign and answer.chosen is None else None
    settled = f"{foreign}. This check found all of its rows equal: the next compaction takes this mark away"
    return tuple(settled if told == foreign else told for told in table.doubts())


def _by_group(steps: Sequence[Step]) -> dict[Any, list[Step]]:
    """Each group's own steps: of thousands of chunks, each read by itself, none is to look at all."""
    found: dict[Any, list[Step]] = {}
    for step in steps:
        for group, delta in step.deltas.items():
            found.setdefault(group, []).append(Step(step.at, step.gtid, {group: delta}))
    return found


def _last(answer: Answer, matches: Sequence[Match]) -> str:
    at = max(range(len(matches)), key=lambda n: (matches[n].gtid != "", answer.reads[n].high), default=None)
    return "" if at is None else matches[at].gtid


def why(table: TableStatus) -> str | None:
    """What is known to keep the table from being equal."""
    if table.stopped:
        return f"the table is stopped: {table.stopped}"
    if table.stale:
        return table.stale.reason
    if table.outdated or table.unread:
        return table.outdated or table.unread
    return None if table.snapshot else NO_SNAPSHOT


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
    total, seconds = answer.total, answer.seconds + finding.seconds
    oldest = min((read.at for read in answer.reads), default=0.0)
    facts = {
        "equal": finding.boundary is not None,
        "source_count": total.rows,
        "lake_count": finding.lake.rows,
        "source_checksum": str(total.sum),
        "lake_checksum": str(finding.lake.sum),
        "frame_rows": finding.now,
        "boundary": finding.boundary or (low.gtid_set if finding.boundary is not None else None),
        "chunks": answer.split.count,
        "chunks_compared": answer.split.count if answer.chosen is None else len(answer.chosen),
        "source_seconds": round(answer.seconds, 1),
        "lake_seconds": round(finding.seconds, 1),
        "rows_per_second": round(total.rows / seconds) if seconds > 0 else None,
        "oldest_read": moment(oldest) if oldest else None,
        "reason": finding.reason,
    }
    return facts | ({"doubts": [*finding.doubts]} if finding.doubts else {})
