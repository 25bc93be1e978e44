"""Asks the source for the count and checksum of each chunk of a table, and for the rows of those that differ.

Of which: all, or a sample; those that the check before found to differ; not those that one has read that did not end.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import pymysql
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from contract.counted import counted
from contract.pipeline import Pipeline
from contract.pipeline_columns import Shown
from contract.schema import TableSchema
from spark.errors import LakeError, TableAlteredError, TableError, TableGoneError
from spark.lake.stopped import Name
from spark.proof.answer import Answer, Opened, moment
from spark.proof.chunk_reads import ChunkReads
from spark.proof.differences import Difference
from spark.proof.instant import certain
from spark.proof.kept import Kept
from spark.proof.known import chunks_of
from spark.proof.splits import Split, split_of
from spark.source.choice import shown_of
from spark.source.source import MADE_ANEW, Source
from spark.source.unreadable import unreadable

ATTEMPTS = 3  # of a table whose columns change under the read
# No such column, no such table, another table than the consistent read began with. Of one made anew within the second
# nothing else tells.
OTHER = (1054, 1146, MADE_ANEW)


@dataclass
class Reading:
    """One check's reads. `epoch`: of the checkpoint that the source shows. `tell` gets lines of progress. `found`: what
    the checks before found to differ, by table. `unread`: the tables without an answer, whose fault that is."""

    spark: SparkSession
    pipeline: Pipeline
    source: Source
    epoch: int
    kept: Kept
    tell: Callable[[str], None] = print
    found: Mapping[Name, Sequence[Difference]] = field(default_factory=dict)
    unread: dict[Name, TableError] = field(default_factory=dict)
    chunks: ChunkReads = field(init=False)

    def __post_init__(self) -> None:
        self.chunks = ChunkReads(self.spark, self.pipeline, self.source, self.epoch, self.tell)

    def answers(self, tables: Sequence[Name]) -> list[Answer]:
        """Of those that have one. Raises LakeError where none has, or what is wrong is no table's."""
        answers = list[Answer]()
        for db, table in tables:
            try:
                answers.append(self.ask(db, table))
            except TableError as error:
                self.unread[db, table] = error
                self.tell(str(error))
        if self.unread and not answers:
            raise next(iter(self.unread.values()))
        return answers

    def ask(self, db: str, table: str) -> Answer:
        """Of a table that was there when the check began. Raises LakeError."""
        name = f"{db}.{table}"
        for _ in range(ATTEMPTS):
            self.source.awake()
            schema, made, began = self.source.schema(db, table), self.source.made(db, table), time.time()
            if schema is None:
                self.kept.drop(name)
                raise TableGoneError(f"{name}: dropped meanwhile, or renamed: the source does not have it any more")
            if (found := self._unless_altered(schema, made)) is not None:
                answer = replace(found, seconds=time.time() - began)
                self.tell(_line(answer))
                return answer
            self.tell(f"{name}: the table was altered while it was read")
            self.kept.drop(name)
        raise TableAlteredError(f"{name}: the table was altered while it was read, {ATTEMPTS} times: verify again")

    def open(self, answer: Answer, numbers: Sequence[int]) -> Opened | None:
        """None where the table has other columns by now."""
        source = answer.shown.source
        self.source.awake()  # the wait for the lake may have been long
        made = self.source.made(source.db, source.table)
        self.chunks.wait()
        began = time.monotonic()
        seen = certain(self.source, self.source.snapshots(source.db, source.table))
        rows: DataFrame | None = None
        try:  # Spark asks for the columns before it is asked for rows
            rows = self.chunks.rows(answer.shown, answer.split, list(numbers), together=True)
            count = rows.persist(StorageLevel.MEMORY_AND_DISK).count()
            self.source.awake()
            high = self.chunks.position(self.source.position())
        except Exception as error:
            if rows is not None:
                rows.unpersist()
            if not self._altered(source, made, error):
                raise
            return None
        opened = Opened(answer, numbers, rows, seen, high)
        chunks, one_by_one = counted(len(numbers), "chunk"), f"{counted(count, 'row')} to compare one by one"
        self.tell(f"{answer.name}: differences in {chunks}, {one_by_one}")
        self.chunks.pace.took(count, began, answer.name, len(numbers), len(numbers))
        return opened if self._same(source) else None

    def _unless_altered(self, schema: TableSchema, made: str) -> Answer | None:
        shown = shown_of(self.pipeline, schema)
        try:
            self.source.refuse_short_years(shown)
            found = self._read(shown)
        except Exception as error:
            if not self._altered(schema, made, error):
                raise unreadable(f"{schema.db}.{schema.table}", error, "the check") or error from None
            return None
        self.source.awake()  # other connections may have read for hours
        # The copy that took its place (gh-ost) was there before the read, which saw it as it was then, half filled.
        swapped = made != self.source.made(schema.db, schema.table)
        return found if self._same(schema) and not swapped else None

    def _altered(self, source: TableSchema, made: str, error: Exception) -> bool:
        """Whether a read failed since the table is another one by now, or is gone."""
        if isinstance(error, LakeError):
            return False
        other = isinstance(error, pymysql.MySQLError) and error.args[:1] and error.args[0] in OTHER
        return bool(other) or not self._same(source) or made != self.source.made(source.db, source.table)

    def _same(self, source: TableSchema) -> bool:
        self.source.awake()
        now = self.source.schema(source.db, source.table)
        return now is not None and now.shape() == source.shape()

    def _read(self, shown: Shown) -> Answer:
        split = self._split(shown)
        wanted = self._found_before(shown, split)
        self.kept.leave(shown, wanted)
        done = self.kept.reads(shown)
        known = frozenset(number for read in done for number in read.totals)
        if known:
            since = moment(min(read.at for read in done))
            name = f"{shown.schema.db}.{shown.schema.table}"
            self.tell(f"{name}: {len(known):,} chunks were read by the check before, since {since}")
        chosen = self._chosen(shown, split.count, wanted | known)
        left = sorted((chosen if chosen is not None else set(range(split.count))) - known)
        reads = list(done)
        for read in self.chunks.reads(shown, split, left) if left else ():
            self.kept.add(shown, read)
            reads.append(read)
        return Answer(shown, split, reads, chosen=chosen, resumed=len(done))

    def _split(self, shown: Shown) -> Split:
        """That of the check before, with what it has read, else one of now."""
        flavor, made = self.pipeline.source.flavor, self.source.made(shown.source.db, shown.source.table)
        split = self.kept.split(shown, flavor, made)
        if split is None:
            walked = partial(self.chunks.bounded, f"{shown.schema.db}.{shown.schema.table}")
            split = split_of(shown, flavor, self.chunks.chunk_rows, self.source.row, walked)
            self.kept.begin(shown, split, made)
        return split

    def _found_before(self, shown: Shown, split: Split) -> frozenset[int]:
        """The chunks of what the checks before found, as far as this one would not read them anyway."""
        schema, whole = shown.schema, self.pipeline.quality.sample_percent == 100
        found = self.found.get((schema.db, schema.table), ())
        if not found or (whole and not self.kept.reads(shown)):
            return frozenset()
        return chunks_of(self.spark, schema, split, found)

    def _chosen(self, shown: Shown, count: int, more: frozenset[int]) -> frozenset[int] | None:
        """Those of the file's percentage, the same as before where that was the same, and `more`; None: all."""
        percent = self.pipeline.quality.sample_percent
        known = self.kept.sample(shown, percent) if percent < 100 else None
        chosen = more | (_sample(count, percent) if known is None else known)
        self.kept.choose(shown, percent, chosen if percent < 100 else None)
        return chosen if percent < 100 and len(chosen) < count else None


def _sample(count: int, percent: int) -> frozenset[int]:
    """Other chunks by chance each time, one at the least."""
    return frozenset(random.sample(range(count), max(1, count * percent // 100)))


def _line(answer: Answer) -> str:
    rows, rate = answer.total.rows, answer.total.rows / max(answer.seconds, 0.001)
    of = f" in {len(answer.chosen)} of {answer.split.count} chunks" if answer.chosen is not None else ""
    return f"{answer.name}: {rows:,} rows in the source{of}, read in {answer.seconds:.1f} s, {rate:,.0f} rows/s"
