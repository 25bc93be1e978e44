"""Asks the source for the count and checksum of each chunk of a table, in consistent reads, by several connections.

Ranges are read one by one: each read is short, `snapshot.max_rows_per_second` holds between them, and what was read is
kept. Buckets take one consistent read of the whole table, a range of its key after the other where the key can be
walked. Rows with a VECTOR come to Spark and are hashed there.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from queue import SimpleQueue

from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from contract.names import quoted
from contract.pipeline import Pipeline
from contract.pipeline_columns import Shown
from contract.schema import TableSchema
from contract.sequence import file_number
from spark import chunks
from spark.checksum import Total, hashed_by_source, source_sql, totals
from spark.choice import shown_of
from spark.errors import LakeError, PassingError
from spark.load import Load
from spark.proof.answer import Answer, Opened, moment
from spark.proof.boundary import NOTHING, Read
from spark.proof.differences import Difference
from spark.proof.kept import Kept
from spark.proof.known import chunks_of
from spark.proof.pace import Pace
from spark.proof.splits import Buckets, Split, split_of
from spark.rewind import Position
from spark.row_wires import wires_of
from spark.rows import typed
from spark.servers import Place
from spark.source import Source

ATTEMPTS = 3  # of a table whose columns change under the read
GROUP = 4  # ranges that a reader of Spark's takes one after the other in one job


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
    pace: Pace = field(init=False)
    _load: Load = field(init=False)
    _look: threading.Lock = field(default_factory=threading.Lock, init=False)

    def __post_init__(self) -> None:
        rules = self.pipeline.snapshot
        self.pace = Pace(rules.max_rows_per_second, self.tell)
        # What is read is the streamer's server: how far a replica is behind is another matter.
        rules = rules.model_copy(update={"max_rows_per_second": None, "max_replica_lag_seconds": None})
        self._load = Load(rules, self.source, self.tell)

    def _wait(self) -> None:
        """Returns once the server is not too busy (`snapshot.max_threads_running`)."""
        with self._look:  # one connection asks for all readers
            self._load.wait()

    def ask(self, db: str, table: str) -> Answer:
        """Raises LakeError."""
        for _ in range(ATTEMPTS):
            schema, began = self.source.schema(db, table), time.time()
            if schema is None:
                raise LakeError(f"{db}.{table} is no table of the source: check its name")
            found = self._read(shown_of(self.pipeline, schema))
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
        seen = self.source.seen()
        rows = self.rows(answer.shown, answer.split, list(numbers), together=True)
        rows = rows.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            self.tell(f"{answer.name}: {len(numbers)} chunk(s) differ, {rows.count():,} rows are compared one by one")
        except PySparkException:  # a column dropped meanwhile is such an error
            rows.unpersist()
            if self._same(source):
                raise
            return None
        opened = Opened(answer, numbers, rows, seen, self._position(self.source.position()))
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
        for read in self._reads(shown, split, left) if left else ():
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

    def _reads(self, shown: Shown, split: Split, left: list[int]) -> Iterator[Read]:
        if isinstance(split, Buckets):
            yield self._buckets(shown, split, left) if hashed_by_source(shown) else self._by_spark(shown, split, left)
        elif hashed_by_source(shown):
            yield from self._ranges(shown, split, left)
        else:
            size = self.pipeline.snapshot.parallelism * GROUP
            for at in range(0, len(left), size):
                yield from _apart(self._by_spark(shown, split, left[at : at + size]))

    def _ranges(self, shown: Shown, split: Split, left: list[int]) -> Iterator[Read]:
        """Each by a consistent read of its own, `snapshot.parallelism` at a time."""
        idle: SimpleQueue[Source] = SimpleQueue()
        readers, done = min(self.pipeline.snapshot.parallelism, len(left)), iter(range(1, len(left) + 1))

        def read(number: int) -> Read:
            self._wait()
            source = idle.get()
            try:
                sql = source_sql(shown, self.pipeline.source.flavor, split.source_where([number]))
                at, seen = time.time(), source.seen()
                with source.consistent() as end:
                    row = source.row(sql)
                found = self._read_of({number: _total(row)}, seen, end, at)
            finally:
                idle.put(source)
            self.pace.took(found.total.rows, f"{shown.schema.db}.{shown.schema.table}", next(done), len(left))
            return found

        with ExitStack() as stack, ThreadPoolExecutor(readers) as pool:
            for _ in range(readers):
                idle.put(stack.enter_context(Source(self.pipeline)))
            yield from pool.map(read, left)

    def _buckets(self, shown: Shown, split: Buckets, left: list[int]) -> Read:
        """All of them in one consistent read."""
        flavor, source, name = self.pipeline.source.flavor, shown.source, f"{shown.schema.db}.{shown.schema.table}"
        walked = list(chunks.walk(source, self.pipeline.snapshot.chunk_rows, self.source.row)) if source.key else []
        ranges = chunks.conditions([quoted(column) for column in source.key], walked)
        found = dict.fromkeys(left, NOTHING)
        wanted = "" if len(left) == split.count else f" and {split.source_where(left)}"
        at, seen = time.time(), self.source.seen()
        with self.source.consistent() as end:
            for done, condition in enumerate(ranges, 1):
                self._wait()
                rows = 0
                sql = source_sql(shown, flavor, f"({condition}){wanted}", split.source_number())
                for number, count, total in self.source.rows(sql):
                    found[int(number)] = found[int(number)].plus(Total(int(count), int(total)))
                    rows += int(count)
                self.pace.took(rows, name, done, len(ranges))
        return self._read_of(found, seen, end, at)

    def _by_spark(self, shown: Shown, split: Split, left: list[int]) -> Read:
        """The rows come to Spark; of buckets by one statement, of ranges by one for each."""
        self._wait()
        at, seen = time.time(), self.source.seen()
        rows = self.rows(shown, split, left)
        found = totals(rows, shown.schema, fn.expr(split.number()))
        self.source.awake()
        read = Read({n: found.get(n, NOTHING) for n in left}, seen, self._position(self.source.position()), at=at)
        self.pace.took(read.total.rows, f"{shown.schema.db}.{shown.schema.table}", len(left), len(left))
        return read

    def rows(self, shown: Shown, split: Split, numbers: list[int], together: bool = False) -> DataFrame:
        """The chunks' rows, typed. Buckets are read by one statement, hence as of one commit; ranges by one for each
        unless it is to be `together`."""
        source, schema = shown.source, shown.schema
        keys = {name: f"k{at}" for at, name in enumerate(source.key)}
        if set(schema.key) <= set(keys) and schema.key:
            spelled = keys.__getitem__
        else:  # the key is none of the server's: the source gives all rows, and Spark takes the wanted ones
            together, spelled = True, quoted
        alike = together or isinstance(split, Buckets)
        parts = [numbers] if alike else [[number] for number in numbers]
        whole = spelled is quoted or (len(numbers) == split.count and alike)
        wanted = ["1 = 1"] if whole else [split.source_where(part, spelled) for part in parts]
        wires = wires_of(self.spark, self.pipeline, source, wanted).coalesce(self.pipeline.snapshot.parallelism)
        rows = wires.select(*typed("_wire", schema))
        return rows.where(split.lake_where(numbers)) if whole and len(numbers) < split.count else rows

    def _read_of(self, found: dict[int, Total], seen: str, end: Place, at: float) -> Read:
        return Read(found, seen, self._position(end), self.source.server.exact, at)

    def _position(self, end: Place) -> Position:
        return self.epoch, file_number(end[0]), end[1]


def _apart(read: Read) -> Iterator[Read]:
    """A read of several statements: each chunk at a commit of its own, of one window."""
    for number, total in read.totals.items():
        yield replace(read, totals={number: total})


def _sample(count: int, percent: int) -> frozenset[int]:
    """Other chunks by chance each time, one at the least."""
    return frozenset(random.sample(range(count), max(1, count * percent // 100)))


def _total(row: Sequence[object] | None) -> Total:
    assert row is not None  # an aggregate without groups has one row
    return Total(int(str(row[0])), int(str(row[1])))


def _line(answer: Answer) -> str:
    rows, rate = answer.total.rows, answer.total.rows / max(answer.seconds, 0.001)
    of = f" in {len(answer.chosen)} of {answer.split.count} chunks" if answer.chosen is not None else ""
    return f"{answer.name}: {rows:,} rows in the source{of}, read in {answer.seconds:.1f} s, {rate:,.0f} rows/s"
