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
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from contract import steps
from contract.checkpoint import Checkpoint
from contract.patterns import any_matches
from contract.pipeline import Pipeline
from contract.schema import TableSchema
from contract.status import LakeStatus, TableStatus, parse
from spark.errors import LakeError, PassingError
from spark.failures import message_of
from spark.lake.applied import AppliedSnapshots
from spark.lake.foreign_commits import did_behind, same_rows
from spark.lake.lake import Lake
from spark.lake.stopped import Name
from spark.proof.altered import untold
from spark.proof.answer import Answer, Opened
from spark.proof.boundary import Read
from spark.proof.checksum import Total, totals
from spark.proof.differences import Difference, found_last
from spark.proof.erased import WHILE, erased, lost
from spark.proof.finding import LACKS, Finding, apart, doubted, found_of
from spark.proof.folding import from_shown, steps_of
from spark.proof.judged import last_shape
from spark.proof.kept import Kept
from spark.proof.mended import mended
from spark.proof.moved import moved
from spark.proof.pinning import CHUNKS, Pinning, unopened
from spark.proof.reading import Reading
from spark.proof.rewind import Past, Position
from spark.proof.unplaced import unplaced
from spark.proof.waiting import Waiting
from spark.source.source import Source
from spark.tables.schema import OWN, Schemas, landed_otherwise

ALTERED = (
    "since the check before this one read some of it, it was altered, or changes of it were left out: verify again"
)
WRITTEN = (
    "somebody else than Headrace's jobs changed it in the lake since the last compaction ({}), which is not compared: "
    "{}, then verify again, or verify with --compact"
)
UNPINNED = "{}: which of its rows differ cannot be told: {}"
MEANWHILE = "{} while it was checked: verify again"
# Asked for behind each wait: the lake may have changes by then that are written by a shape of after the check's begin.
Shapes = Callable[[], Schemas]


@dataclass
class Verification:
    """One check of some tables. `tell` gets lines of progress. `keeps`: whether it keeps its reads. `compact` is
    called while it waits for a compaction. `lost`: the tables of which it could not tell, and another check can.
    `mended`: why, of those whose rows were right when they were looked at. `frames`: the lake's tables that were
    compared; `later`: as of `last_shape`, of those. `untold`: up to where changes do not tell all, as the lake knew
    behind the last wait; `status`: the lake's behind the first one, whose tables are compared."""

    spark: SparkSession
    pipeline: Pipeline
    lake: Lake
    source: Source
    low: Checkpoint
    tell: Callable[[str], None] = print
    keeps: bool = True
    compact: Callable[[], None] | None = None
    frames: dict[str, DataFrame] = field(default_factory=dict)
    later: dict[str, TableSchema | None] = field(default_factory=dict)
    lost: set[str] = field(default_factory=set)
    mended: dict[str, str] = field(default_factory=dict)
    untold: dict[Name, Position] = field(default_factory=dict)
    status: LakeStatus | None = None
    reading: Reading = field(init=False)

    def __post_init__(self) -> None:
        kept = Kept.open(self.lake, self.low, self.keeps)
        self.reading = Reading(self.spark, self.pipeline, self.source, self.low.epoch, kept, self.tell)

    def ask(self, tables: list[tuple[str, str]]) -> list[Answer]:
        """The source's answers; the tables without one are `reading.unread`. Raises LakeError."""
        if reason := self.source.server.unordered(self.source.row):
            raise LakeError(reason)
        self.source.wait_for(self.low.gtid_set, 60)
        self.reading.found = found_last(self.spark, self.lake)
        self._drop_altered(tables)
        answers = self.reading.answers(tables)
        self.lost |= {".".join(name) for name, error in self.reading.unread.items() if isinstance(error, PassingError)}
        self.low = self.reading.kept.low  # of a check that did not end, which may be earlier
        self.reading.kept.save()
        return answers

    def _drop_altered(self, tables: list[tuple[str, str]]) -> None:
        """What was read of a table before what no change tells of (of what the lake does not know of yet, see
        `compare`), and of one that may change so at any time; and before rows were erased."""
        text, places = self.lake.text(self.lake.status), untold(self.lake, self.low, tables)
        gone = erased(self.lake, self.reading.kept.low.place)
        stale = {name for name, table in parse(text).tables.items() if table.stale} if text else set[str]()
        for db, table in tables:
            name = f"{db}.{table}"
            if name in stale or any_matches(self.pipeline.tables.cascades, db, table):
                self.reading.kept.drop(name)
            elif (place := places.get((db, table))) is not None:
                self.reading.kept.drop_before(name, place)
            if ones := gone.get(name):
                self.reading.kept.drop_if(name, partial(lost, ones=ones))

    def wait(self, names: Sequence[str], high: Position, executed: str, seconds: float) -> LakeStatus:
        """The lake's status once it is complete up to the place. `executed`: the GTID set that the source had after it;
        a binlog that was rotated since has no commit at its end, so the set counts too. Raises LakeError."""
        if self.compact is not None and self.status is None and self._any_written(names):
            self.compact()
        waiting = Waiting(self.lake, self.low.epoch, self.tell, self.compact)
        status = waiting.until_complete(names, high, executed, seconds)
        known = [(table.db, table.table) for table in status.tables.values()]
        self.untold, self.status = untold(self.lake, status.checkpoint, known), self.status or status
        return status

    def compare(self, answer: Answer, status: LakeStatus, schemas: Schemas) -> Finding:
        """Finds for each read the boundary at which the lake's table is what the source answered."""
        began = time.time()
        table = status.tables.get(answer.name)
        if table is None or table.version is None:
            empty = answer.chosen is None and answer.total == Total()  # chunks of a sample may be, and the table not
            reason = None if empty else LACKS
            return Finding(Total(), "" if reason is None else None, answer.total.rows, 0.0, reason)
        now = self.frame(answer, table)
        self.frames[answer.name], self.later[answer.name] = now, last_shape(answer, status, schemas)
        rows = now if answer.chosen is None else now.where(answer.split.lake_where(answer.chosen))
        last = totals(rows, answer.schema, fn.expr(answer.split.number()))
        past = self.past(answer, status, schemas, now)
        steps = steps_of(past, answer.split, answer.reads) if past else []
        found = found_of(answer, last, steps, apart(table), began)
        found = doubted(table, answer, found, lambda: self._unplaced(table, status, now))
        if told := self._written(table):
            self.lost.add(answer.name)
            return replace(found, boundary=None, reason=told)
        place = self.untold.get((table.db, table.table))
        if place is not None and answer.resumed_before(place):
            self.lost.add(answer.name)
            return replace(found, boundary=None, reason=ALTERED)
        if table.unequal:
            return replace(found, boundary=None, reason=table.unequal)
        if found.wrong and (told := landed_otherwise(answer.schema, dict(now.dtypes))):
            return replace(found, reason=told)
        if found.wrong and (told := (past.lacks() if past else None) or self._erased(answer.name, answer.reads)):
            self.lost.add(answer.name)
            return replace(found, reason=MEANWHILE.format(told))
        # By a snapshot since the table is as behind the statement, and no change leads back over that.
        if found.wrong and found.reason is None and place is not None and answer.older_than(place):
            self.lost.add(answer.name)
            return replace(found, reason=ALTERED)
        return found

    def _any_written(self, names: Sequence[str]) -> bool:
        text = self.lake.text(self.lake.status)
        tables = parse(text).tables if text else {}
        return any(self._written(tables[name]) for name in names if name in tables)

    def _written(self, table: TableStatus) -> str | None:
        """Why equal rows would say nothing of what readers see: the version that is compared is the last
        compaction's."""
        name = table.db, table.table
        did = did_behind(self.lake, name, table.version) if table.version is not None else None
        return (
            None if did is None or self._replaced(name, table) else WRITTEN.format(did, steps.compaction(self.pipeline))
        )

    def _erased(self, name: str, reads: Sequence[Read]) -> str | None:
        """Why the changes may not lead back to what was read, in words; None where no erasure is a reason."""
        ones = erased(self.lake, self.low.place).get(name, ())
        return WHILE if any(lost(read, ones) for read in reads) else None

    def made_anew(self, name: Name) -> bool:
        """Whether another snapshot than the one that is checked was applied to the table meanwhile. The files of a
        table's first one take the place of those that it had before, which a check may still read."""
        table = self.status.tables.get(".".join(name)) if self.status else None
        return self._replaced(name, table) or bool(self.status and moved(self.lake, name, self.status))

    def _replaced(self, name: Name, table: TableStatus | None) -> bool:
        """Whether the lake has the rows of another snapshot than a status's table."""
        applied = AppliedSnapshots(self.lake).tables.get(name)
        return applied is not None and (table is None or table.snapshot is None or table.snapshot.id != applied.id)

    def pin(self, wrong: Sequence[tuple[Answer, Finding]], shapes: Shapes, seconds: float) -> list[Difference]:
        """The rows that differ in the chunks that do, and the chunks of which no rows can be told."""
        opened = [self._opened(answer, sorted(finding.wrong)[:CHUNKS]) for answer, finding in wrong]
        known = [one for one in opened if one is not None]
        found: list[Difference] = []
        try:
            names, high = [one.answer.name for one in known], max((one.high for one in known), default=self.low.place)
            status = self.wait(names, high, self.source.executed(), seconds)
            schemas = shapes()
        except Exception as error:  # of what was compared nothing is to be lost
            self.tell(f"which rows differ cannot be told: {message_of(error, self.pipeline)}")
            opened = [None] * len(opened)
        for (answer, finding), one in zip(wrong, opened, strict=True):
            pinned = self._pinned_or_told(one, status, schemas) if one else None
            if pinned == [] and self._mended(answer.name, status):
                continue
            found += [*(pinned or ()), *unopened(answer, finding.wrong - set(one.numbers if one and pinned else ()))]
        for one in known:
            one.rows.unpersist()
        return found

    def _opened(self, answer: Answer, numbers: Sequence[int]) -> Opened | None:
        """None where its rows cannot be read, or it has other columns by now."""
        try:
            return self.reading.open(answer, numbers)
        except Exception as error:  # as of one that cannot be compared: the others' findings are not lost for it
            self.tell(UNPINNED.format(answer.name, message_of(error, self.pipeline)))
            return None

    def _pinned_or_told(self, opened: Opened, status: LakeStatus, schemas: Schemas) -> list[Difference] | None:
        """None where that failed."""
        try:
            return self._pinned(opened, status, schemas)
        except Exception as error:
            self.tell(UNPINNED.format(opened.answer.name, message_of(error, self.pipeline)))
            return None

    def _mended(self, name: str, status: LakeStatus) -> bool:
        """Notes a table whose rows are right with this status, and may not have been with the first one."""
        told = mended(name, self.status, status) if self.status else None
        if told:
            self.mended[name] = MEANWHILE.format(told)
            self.lost.add(name)
        return told is not None

    def _pinned(self, opened: Opened, status: LakeStatus, schemas: Schemas) -> list[Difference]:
        """None where the rows are right."""
        table = status.tables.get(opened.answer.name)
        if table is None or table.version is None:
            return []
        read = Read({}, opened.seen, opened.high)
        if self._erased(opened.answer.name, [read]):  # a row of it would be told as missing, with its key
            return unopened(opened.answer, opened.numbers)
        now = self.frame(opened.answer, table)
        past = self.past(opened.answer, status, schemas, now)
        return Pinning.of(opened, now, from_shown(past, read) if past else None).differences()

    def frame(self, answer: Answer, table: TableStatus) -> DataFrame:
        """The lake's table as the status means it."""
        path = self.lake.table(answer.schema.db, answer.schema.table)
        return self.lake.frame(path, None if table.version is None else same_rows(self.lake, path, table.version))

    def past(self, answer: Answer, status: LakeStatus, schemas: Schemas, now: DataFrame) -> Past | None:
        """The table's changes of about the low place and later."""
        if status.changes_version is None:
            return None
        low, schema = self.low.place, answer.schema
        mine = self._changes(status.changes_version, (schema.db, schema.table))
        # Said by single fields too, which lets Delta pass by the files that are older.
        mine = mine.where((fn.col("_seq.epoch") > low[0]) | (fn.col("_seq.file") >= low[1]))
        mine = mine.where(fn.col("_seq.epoch") >= low[0])
        lake = {name: kind for name, kind in now.dtypes if name not in OWN}
        return Past(mine, schemas.all(schema.db, schema.table), schema, lake, low)

    def _changes(self, version: int, name: Name) -> DataFrame:
        """The table's, of that version of `_changes`."""
        changes = self.lake.frame(self.lake.changes, same_rows(self.lake, self.lake.changes, version))
        return changes.where((fn.col("tbl") == ".".join(name)) & (fn.col("db") == name[0]))

    def _unplaced(self, table: TableStatus, status: LakeStatus, rows: DataFrame) -> bool:
        version, place = status.changes_version, status.checkpoint.place if status.checkpoint else self.low.place
        return unplaced(rows, None if version is None else self._changes(version, (table.db, table.table)), place)
