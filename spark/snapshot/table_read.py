"""One table's rows, from the source into its staged rows (staged.py), group of chunks by group."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice

from pyspark.sql import SparkSession

from contract.schema import TableSchema
from spark.lake.manifests import rows_folder
from spark.lake.unfinished import Part, Progress, Unfinished
from spark.snapshot.load import Load
from spark.snapshot.snapshot_records import SnapshotRecords
from spark.snapshot.staged import Added, StagedRows
from spark.snapshot.transformed import SnapshotTransforms
from spark.source.choice import shown_of
from spark.source.chunks import Boundary, conditions, walk, walked
from spark.source.row_texts import rows_of
from spark.source.row_wires import wires_of
from spark.source.source import Source
from spark.tables.rows import parsed

Between = Callable[[TableSchema, int], None]


@dataclass
class TableRead:
    """`walker`: a connection of its own for the boundaries. `between` is called before each group is read, with the
    count of the parts before it (a test may change the table there). `records`: where rows go to Kafka, too."""

    spark: SparkSession
    walker: Source
    load: Load
    transforms: SnapshotTransforms
    job: Unfinished
    progress: Progress
    tell: Callable[[str], None]
    between: Between | None = None
    records: SnapshotRecords | None = None
    _began: float = field(default_factory=time.monotonic, init=False)

    def __post_init__(self) -> None:
        job, shape = self.job, self.progress.shape
        self._shown = shown_of(self.walker.pipeline, shape).schema
        self._staged = StagedRows(self.spark, job.lake, rows_folder(job.folder, shape.db, shape.table), job.id)

    def run(self) -> None:
        """Reads what is missing, and notes each part when it is whole."""
        self.job.prove_own()
        self._staged.back_to(self.progress.version)
        if self.progress.whole:
            return
        self.job.note(self.progress)  # an erasure is to see that the table is being read
        self._staged.begin(self._shown)
        before = self.progress.rows
        with closing(self._groups()) as groups:  # where a part fails, nobody may walk on in this connection
            for wanted, to in groups:
                if self.between:
                    self.between(self.progress.shape, len(self.progress.parts))
                self.load.server.awake()  # the table or the group before may have been read for long
                self.load.wait()
                self._part(wanted, to)
                self._told(before)

    def _groups(self) -> Generator[tuple[list[str], Boundary | None], None, None]:
        """The conditions of each group, and the boundary at its end; None at the table's. A group is walked while the
        one before it is read, whose pages the server then has in memory."""
        schema, behind = self.progress.shape, self.progress.behind
        names = [f"k{at}" for at in range(len(walked(schema)))]
        steps = walk(schema, self.load.chunk_rows, self.walker.row, behind)
        with ThreadPoolExecutor(1) as pool:
            ahead = pool.submit(self._walked, steps)
            ends = False
            while not ends:
                found = ahead.result()
                ends = len(found) < self.load.group
                if not ends:
                    ahead = pool.submit(self._walked, steps)
                yield conditions(names, found, behind, ends), None if ends else found[-1]
                behind = found[-1] if found else behind

    def _walked(self, steps: Iterator[Boundary]) -> list[Boundary]:
        self.walker.awake()  # the group before may have been read for long, or waited for a busy server
        return list(islice(steps, self.load.group))

    def _part(self, wanted: list[str], to: Boundary | None) -> None:
        pipeline, schema, began = self.walker.pipeline, self.progress.shape, time.monotonic()
        if self.transforms.of(schema) or self.records:
            added = self._by_texts(wanted)
        else:
            # Not by the walker, whose connection walks on meanwhile.
            wires = wires_of(self.spark, self.load.server, schema, wanted)
            added = self._staged.append(wires, self._shown, self.progress.p0)
        # Not by the rows that are kept: a transform may drop most of them.
        self.load.took(max(added.rows, (len(wanted) - 1) * self.load.chunk_rows), began)
        masked = any(key in pipeline.show(schema).masks for key in schema.key)
        end = None if masked else to
        part = Part(rows=added.rows, to=end, version=added.version, nulled=added.nulled, at=time.time())
        self.progress.parts.append(part)
        self.progress.whole = to is None
        self.job.note(self.progress)

    def _by_texts(self, wanted: list[str]) -> Added:
        """Transforms and consumers of Kafka take a row's texts."""
        pipeline, schema, p0 = self.walker.pipeline, self.progress.shape, self.progress.p0
        told = pipeline.show(schema).schema
        read = rows_of(self.spark, self.load.server, schema, wanted).coalesce(pipeline.snapshot.parallelism)
        with self.transforms.applied(read, told) as texts:
            wires = texts.withColumn("_wire", parsed("after", self._shown.columns))
            added = self._staged.append(wires, self._shown, p0)
            if self.records:
                self.records.send(texts, told, p0)
        return added

    def _told(self, before: int) -> None:
        schema, rows, parts = self.progress.shape, self.progress.rows, len(self.progress.parts)
        rate = (rows - before) / max(time.monotonic() - self._began, 0.001)
        self.load.server.awake()
        about = (
            "" if self.progress.whole else f" of about {max(self.load.server.about(schema.db, schema.table), rows):,}"
        )
        self.tell(f"{schema.db}.{schema.table}: {rows:,}{about} rows in {parts} groups of chunks, {rate:,.0f} rows/s")
