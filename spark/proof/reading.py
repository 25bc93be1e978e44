"""Asks the source for the count and checksum of each chunk of a table, and for the rows of those that differ.

Of which: all, or a sample; those that the check before found to differ; not those that one has read that did not end.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import pymysql
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from contract.pipeline import Pipeline
from contract.pipeline_columns import Shown
from contract.schema import TableSchema
from spark.errors import LakeError, PassingError
from spark.proof.answer import Answer, Opened, moment
from spark.proof.chunk_reads import ChunkReads
from spark.proof.differences import Difference
from spark.proof.kept import Kept
from spark.proof.known import chunks_of
from spark.proof.splits import Split, split_of
from spark.snapshot.load import Load
from spark.source.choice import shown_of
from spark.source.source import MADE_ANEW, Source

ATTEMPTS = 3  # of a table whose columns change under the read


@dataclass
class Reading:
    """One check's reads. `epoch`: of the checkpoint that the source shows. `tell` gets lines of progress. `found`: what
    the checks before found to differ, by table."""

    spark: SparkSession
    pipeline: Pipeline
    source: Source
    epoch: int
    kept: Kept
    tell: Callable[[str], None] = print
    found: Mapping[tuple[str, str], Sequence[Difference]] = field(default_factory=dict)
    chunks: ChunkReads = field(init=False)

    def __post_init__(self) -> None:
        self.chunks = ChunkReads(self.spark, self.pipeline, self.source, self.epoch, self.tell)

    def ask(self, db: str, table: str) -> Answer:
        """Raises LakeError."""
        for _ in range(ATTEMPTS):
            schema, began = self.source.schema(db, table), time.time()
            if schema is None:
                raise LakeError(f"{db}.{table} is no table of the source: check its name")
            try:
                found = self._read(shown_of(self.pipeline, schema))
            except pymysql.MySQLError as error:
                if error.args[0] != MADE_ANEW:
                    raise
                continue
            if self._same(schema):
                answer = replace(found, seconds=time.time() - began)
                self.tell(_line(answer))
                return answer
            self.kept.drop(f"{db}.{table}")
        raise PassingError(f"{db}.{table}: its columns keep changing; verify again when the ALTER TABLEs are through")

    def open(self, answer: Answer, numbers: Sequence[int]) -> Opened | None:
        """None where the table has other columns by now."""
        source = answer.shown.source
        self.source.awake()  # the wait for the lake may have been long
        self.chunks.wait()
        seen = self.source.seen()
        rows = self.chunks.rows(answer.shown, answer.split, list(numbers), together=True)
        rows = rows.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            count = rows.count()
        except PySparkException:  # a column dropped meanwhile is such an error
            rows.unpersist()
            if self._same(source):
                raise
            return None
        opened = Opened(answer, numbers, rows, seen, self.chunks.position(self.source.position()))
        self.tell(f"{answer.name}: {len(numbers)} chunk(s) differ, {count:,} rows are compared one by one")
        self.chunks.pace.took(count, answer.name, len(numbers), len(numbers))
        return opened if self._same(source) else None

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
            rows = Load(self.pipeline.snapshot, self.source).chunk_rows  # fewer, where a second may take fewer
            split = split_of(shown, flavor, rows, self.source.row)
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
