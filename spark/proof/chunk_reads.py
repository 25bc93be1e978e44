"""Reads of a table's chunks from the source, each as of a commit: their counts and checksums, or their rows.

Ranges are read one by one: each read is short, `snapshot.max_rows_per_second` holds between them, and what was read is
kept. Buckets take one consistent read of the whole table, a range of its key after the other where the key can be
walked, and one statement where the table has no snapshot reads. Rows with a VECTOR come to Spark and are hashed there.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import count
from queue import SimpleQueue

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from contract.names import quoted
from contract.pipeline import Pipeline
from contract.pipeline_columns import Shown
from contract.sequence import file_number
from spark.proof.boundary import NOTHING, Read
from spark.proof.checksum import Total, hashed_by_source, source_sql, totals
from spark.proof.instant import Instant, certain, instant
from spark.proof.pace import Pace
from spark.proof.rewind import Position
from spark.proof.splits import Buckets, Split
from spark.snapshot.load import Load
from spark.source import chunks
from spark.source.row_wires import wires_of
from spark.source.servers import Place
from spark.source.source import Source
from spark.tables.rows import typed

GROUP = 4  # ranges that a reader of Spark's takes one after the other in one job


@dataclass
class ChunkReads:
    """`epoch`: of the checkpoint that the source shows. `tell` gets lines of progress."""

    spark: SparkSession
    pipeline: Pipeline
    source: Source
    epoch: int
    tell: Callable[[str], None]
    pace: Pace = field(init=False)
    _load: Load = field(init=False)
    _look: threading.Lock = field(default_factory=threading.Lock, init=False)

    def __post_init__(self) -> None:
        rules = self.pipeline.snapshot
        self.pace = Pace(rules.max_rows_per_second, self.tell)
        # What is read is the streamer's server: how far a replica is behind is another matter.
        rules = rules.model_copy(update={"max_rows_per_second": None, "max_replica_lag_seconds": None})
        self._load = Load(rules, self.source, self.tell, "the check")

    def reads(self, shown: Shown, split: Split, left: list[int]) -> Iterator[Read]:
        """Of the chunks of these numbers, as they come."""
        snapshots = self.source.snapshots(shown.source.db, shown.source.table)
        if isinstance(split, Buckets):
            read = self._buckets if hashed_by_source(shown) else self._by_spark
            yield read(shown, split, left, snapshots)
        elif hashed_by_source(shown):
            yield from self._ranges(shown, split, left, snapshots)
        else:
            size = self.pipeline.snapshot.parallelism * GROUP
            for at in range(0, len(left), size):
                yield from _apart(self._by_spark(shown, split, left[at : at + size], snapshots))

    @property
    def chunk_rows(self) -> int:
        """Fewer, where a second may take fewer."""
        return Load(self.pipeline.snapshot, self.source).chunk_rows

    def bounded(self, name: str, boundaries: Iterator[chunks.Boundary]) -> Iterator[chunks.Boundary]:
        """As they are found by a walk along the key of a table: that looks at every row, so it takes the server no
        faster than the reads do."""
        for done in count(1):
            self.source.awake()  # it may have waited for long
            self.wait()
            began = time.monotonic()
            if (found := next(boundaries, None)) is None:
                return
            self.pace.walked(self.chunk_rows, began, name, done * self.chunk_rows)
            yield found

    def _ranges(self, shown: Shown, split: Split, left: list[int], snapshots: bool) -> Iterator[Read]:
        """Each by a read of its own, `snapshot.parallelism` at a time."""
        idle: SimpleQueue[Source] = SimpleQueue()
        readers, done = min(self.pipeline.snapshot.parallelism, len(left)), iter(range(1, len(left) + 1))

        def read(number: int) -> Read:
            self.wait()
            source, began = idle.get(), time.monotonic()
            try:
                sql = source_sql(shown, self.pipeline.source.flavor, split.source_where([number]))
                with instant(source, snapshots) as of:
                    row = source.row(sql)
                found = self._read_of({number: _total(row)}, of)
            finally:
                idle.put(source)
            self.pace.took(found.total.rows, began, f"{shown.schema.db}.{shown.schema.table}", next(done), len(left))
            return found

        with ExitStack() as stack, ThreadPoolExecutor(readers) as pool:
            for _ in range(readers):
                idle.put(stack.enter_context(self.source.again()))
            yield from pool.map(read, left)

    def _buckets(self, shown: Shown, split: Buckets, left: list[int], snapshots: bool) -> Read:
        """All of them in one consistent read, which waits in its middle where nobody waits for it then."""
        flavor, source, name = self.pipeline.source.flavor, shown.source, f"{shown.schema.db}.{shown.schema.table}"
        parts = snapshots and source.key
        walk = self.bounded(name, chunks.walk(source, self.chunk_rows, self.source.row))
        walked = list(walk) if parts else []
        ranges = chunks.conditions([quoted(column) for column in source.key], walked)
        found = dict.fromkeys(left, NOTHING)
        wanted = "" if len(left) == split.count else f" and {split.source_where(left)}"
        self.wait()
        with instant(self.source, snapshots) as of:
            for done, condition in enumerate(ranges, 1):
                if done > 1 and self.source.server.lets_alter:
                    self.wait()
                rows, began = 0, time.monotonic()
                sql = source_sql(shown, flavor, f"({condition}){wanted}", split.source_number())
                for number, some, total in self.source.rows(sql):
                    found[int(number)] = found[int(number)].plus(Total(int(some), int(total)))
                    rows += int(some)
                if snapshots:
                    self.source.let_alter()
                self.pace.took(rows, began, name, done, len(ranges))
        return self._read_of(found, of)

    def _by_spark(self, shown: Shown, split: Split, left: list[int], snapshots: bool) -> Read:
        """The rows come to Spark; of buckets by one statement, of ranges by one for each."""
        self.source.awake()  # the pace may have held it for long
        self.wait()
        at, began, seen = time.time(), time.monotonic(), certain(self.source, snapshots)
        rows = self.rows(shown, split, left)
        found = totals(rows, shown.schema, fn.expr(split.number()))
        self.source.awake()
        read = Read({n: found.get(n, NOTHING) for n in left}, seen, self.position(self.source.position()), at=at)
        self.pace.took(read.total.rows, began, f"{shown.schema.db}.{shown.schema.table}", len(left), len(left))
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
        wires = wires_of(self.spark, self.source, source, wanted)
        rows = wires.select(*typed("_wire", schema)).coalesce(self.pipeline.snapshot.parallelism)
        return rows.where(split.lake_where(numbers)) if whole and len(numbers) < split.count else rows

    def _read_of(self, found: dict[int, Total], of: Instant) -> Read:
        return Read(found, of.seen, self.position(of.end), of.exact, of.at)

    def position(self, end: Place) -> Position:
        """With the epoch of the checkpoint that the source shows."""
        return self.epoch, file_number(end[0]), end[1]

    def wait(self) -> None:
        """Returns once the server is not too busy (`snapshot.max_threads_running`)."""
        with self._look:  # one connection asks for all readers
            self._load.wait()


def _apart(read: Read) -> Iterator[Read]:
    """A read of several statements: each chunk at a commit of its own, of one window."""
    for number, total in read.totals.items():
        yield replace(read, totals={number: total})


def _total(row: Sequence[object] | None) -> Total:
    assert row is not None  # an aggregate without groups has one row
    return Total(int(str(row[0])), int(str(row[1])))
