"""The snapshot: every table's rows, read by key ranges over JDBC into a staging folder.

P0 is a checkpoint of the streamer (places.py), and no chunk is read before the server shows every transaction of it.
The values come as the very texts that the stream carries, made by the server. The manifest is written last: without it
a staging is never applied. It holds P1, the position after the last chunk.

What a run has read and noted when it ends before that, the next run of the same tables goes on with (resume.py). P0
stays, table by table: rows that are read later are as fresh at least, and the shape is still the one of P0.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from pyspark.sql import SparkSession

from contract.checkpoint import Checkpoint
from contract.counted import counted
from contract.names import quoted
from contract.pipeline import Pipeline
from contract.schema import TableSchema
from spark.errors import LakeError, TableAlteredError, TableError, TableGoneError, chain
from spark.kafka.topic_places import TopicPlaces
from spark.lake.erasures import Erasures
from spark.lake.lake import Lake
from spark.lake.letters import BEFORE_ALL
from spark.lake.manifests import MANIFEST, Manifest, rows_folder
from spark.lake.unfinished import Found, Progress, Unfinished
from spark.snapshot.load import Load
from spark.snapshot.places import Places
from spark.snapshot.resume import Resume
from spark.snapshot.snapshot_records import SnapshotRecords
from spark.snapshot.staged import StagedRows
from spark.snapshot.table_read import Between, TableRead
from spark.snapshot.transformed import SnapshotTransforms
from spark.source.choice import shown_of
from spark.source.filters import refuse_filtered
from spark.source.source import Source
from spark.source.unreadable import unreadable
from spark.tables import schema as shapes

ATTEMPTS = 3  # of a table whose shape changes while it is read
VISIBLE = 60  # seconds until the streamer's server shows what the streamer has read there
APPLIED = 600  # seconds until a replica has it
GONE = "the source does not have it any more; the lake keeps it as it was"
FULL = ("No space left on device", "Disk quota exceeded")


def shared_keys(pipeline: Pipeline, schema: TableSchema, told: str) -> str:
    """`told`: which rows have one key."""
    return (
        f"{schema.db}.{schema.table}: {told}, and the lake would have one row of each key: choose unique columns in "
        f"keys of {pipeline.path}, or let no transform make one key of two"
    )


@dataclass
class Staging:
    """One snapshot under way. `source`: the server that the streamer reads; `reader`: the one whose rows are read, if
    that is another. `tell` gets a line of progress; `between`, `records`: as of TableRead. `refused`: the tables
    that the last run left out, and why; `gone`: those of them that the source has no more, and nobody named. `seen`:
    what was in Kafka before."""

    spark: SparkSession
    pipeline: Pipeline
    lake: Lake
    source: Source
    places: Places
    reader: Source | None = None
    tell: Callable[[str], None] = print
    between: Between | None = None
    records: SnapshotRecords | None = None
    seen: TopicPlaces = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.refused, self.gone = dict[str, str](), set[str]()
        self.reading = self.reader or self.source
        self.load = Load(self.pipeline.snapshot, self.reading, self.tell, self.places.job)

    def run(self, tables: list[tuple[str, str]], named: bool = False, all: bool = False) -> Manifest:
        """Stages the tables. `named`: by a person, who is to be told at once of one that the lake cannot have, or that
        is not there; else the others are staged. `all`: they are all of the pipeline's. Raises LakeError."""
        self.load.prove()
        planned = self.planned(tables, named)
        p0 = self.begin()
        SnapshotTransforms(self.spark, self.pipeline, p0, self.tell)  # what is wrong with one is told before the reads
        resume = Resume(self.lake, p0, self.tell, self.seen)
        job = resume.job([f"{one.schema.db}.{one.schema.table}" for one in planned], all)
        try:
            with job.beating(), self.reading.again() as walker:
                begun = [resume.table(job, found) or self._anew(found, p0) for found in planned]
                read = [progress for one in begun if (progress := self._read(job, one, walker, named))]
                if not read:
                    raise LakeError("; ".join(self.refused.values()))
                return self._stage(job, read)
        except Exception as error:  # on a full disk, compaction needs the space
            if any(word in text for text in chain(error) for word in FULL):
                with suppress(Exception):
                    job.prove_own()
                    self.lake.delete(job.folder)
            raise

    def planned(self, tables: list[tuple[str, str]], named: bool) -> list[Found]:
        """The tables as they are, without those that are refused by their shapes, or gone. Raises LakeError."""
        planned = list[Found]()
        for db, table in tables:
            try:
                planned.append(self.found(db, table))
            except TableError as error:
                if named:
                    raise
                self._refuse(f"{db}.{table}", error, named)
        if not planned:
            raise LakeError("; ".join(self.refused.values()))
        return planned

    def _refuse(self, name: str, error: TableError, named: bool) -> None:
        gone = isinstance(error, TableGoneError)
        self.refused[name] = f"{name}: {GONE}" if gone else str(error)
        self.gone |= {name} if gone and not named else set()
        self.tell(f"{name} is left out: {self.refused[name].removeprefix(f'{name}: ')}")

    def begin(self) -> Checkpoint:
        """P0 of tables whose shapes were asked for."""
        self.source.awake()
        p0 = self.places.now()
        self.reading.awake()  # that waits as long as the streamer goes on
        # Of MariaDB `gtid_set` is of before an open XA transaction, and the place, which rows get, is behind it.
        self.reading.wait_for(p0.sent, APPLIED if self.reading.replica else VISIBLE, self.places.job)
        return p0

    def end(self) -> str:
        """P1, behind the last read."""
        self.source.awake()
        return self.source.executed()

    def _stage(self, job: Unfinished, read: list[Progress]) -> Manifest:
        p0 = min((one.p0 for one in read), key=lambda found: found.place)
        manifest = Manifest(
            id=job.id,
            pipeline=self.pipeline.name,
            p0=p0,
            p1=self.end(),
            tables=[self.pipeline.show(one.shape).schema for one in read],
            counts={one.name: one.rows for one in read},
            nulled={one.name: one.nulled for one in read if one.nulled},
            versions={one.name: one.version for one in read},
            later={one.name: one.p0 for one in read if one.p0 != p0},
            erasures={one.name: one.erasures for one in read},
            letters=job.plan.letters if job.plan else BEFORE_ALL,
            seen=job.plan.seen if job.plan else {},
        )
        job.leave_out(read)
        self.lake.write(f"{job.folder}/{MANIFEST}", manifest.model_dump(mode="json"))
        return manifest

    def found(self, db: str, table: str) -> Found:
        """The table as it is. Raises LakeError; TableError where the lake cannot have such a table, or it is gone."""
        self.reading.awake()
        if self.reading.replica:
            refuse_filtered(self.reading, self.source, db, table)
        schema = self.reading.schema(db, table)
        if schema is None:
            self._refuse_late(db, table)
            raise TableGoneError(f"{db}.{table} is no table of the source: check its name, or the user's SELECT right")
        shapes.fields(shown_of(self.pipeline, schema).schema)
        return Found(schema, self.reading.made(db, table))

    def _refuse_late(self, db: str, table: str) -> None:
        """Of a table that the replica alone does not have it would be wrong to say that it is gone."""
        self.source.awake()
        if self.reading.replica and self.source.schema(db, table) is not None:
            raise TableError(
                f"snapshot.replica, {self.reading.pipeline.source.where}, does not show {db}.{table}, which the source "
                "has: see how far it is behind, and to the user's SELECT right there"
            )

    def _read(self, job: Unfinished, progress: Progress, walker: Source, named: bool) -> Progress | None:
        """None of a table with a row that the lake cannot have, or that is gone; the others go on."""
        try:
            return self._table(job, progress, walker)
        except TableError as error:
            self._refuse(progress.name, error, named)
            return None

    def _table(self, job: Unfinished, progress: Progress, walker: Source) -> Progress:
        """Reads a table, anew if DDL came in between: a column added with a default has its value in rows that
        were read without it, and no row event tells. All of its rows were read by the shape that it gives."""
        for _ in range(ATTEMPTS):
            failure: Exception | None = None
            transforms = SnapshotTransforms(self.spark, self.pipeline, progress.p0, self.tell)
            hooks = self.tell, self.between, self.records
            try:
                TableRead(self.spark, walker, self.load, transforms, job, progress, *hooks).run()
            except Exception as error:  # a column dropped meanwhile is such an error: the shape decides
                failure = error
            now = self.found(progress.shape.db, progress.shape.table)
            if progress.same(now):
                if failure:
                    raise unreadable(progress.name, failure, self.places.job) or failure
                self._refuse_shared_keys(job, progress, transforms)
                return progress
            self.tell(f"{progress.name}: the table was altered while it was read; it is read again")
            job.forget(progress.shape.db, progress.shape.table)
            progress = self._anew(now, self.begin())
        raise TableAlteredError(
            f"{progress.name}: the table was altered {ATTEMPTS} times while it was read. Run the snapshot again when "
            "the ALTER TABLEs are through"
        )

    def _anew(self, found: Found, p0: Checkpoint) -> Progress:
        unfit = self.pipeline.lake.unrepresentable
        return Progress(
            shape=found.schema, made=found.made, p0=p0, unfit=unfit, erasures=Erasures(self.lake).known.number
        )

    def _refuse_shared_keys(self, job: Unfinished, progress: Progress, transforms: SnapshotTransforms) -> None:
        """Of a key that the pipeline file chose, or a transform made, nothing but the rows themselves say that it is
        one."""
        schema, rows = progress.shape, progress.rows
        key = self.pipeline.show(schema).schema.key
        if (key == schema.key and not transforms.of(schema)) or not rows or not key:
            return
        staged = StagedRows(self.spark, self.lake, rows_folder(job.folder, schema.db, schema.table), job.id)
        shared = rows - staged.rows(progress.version).select(*map(quoted, key)).distinct().count()
        if shared:
            job.forget(schema.db, schema.table)  # the next run is to see what was done about it
            told = f"{counted(shared, 'row')} with the key ({', '.join(key)}) of another one"
            raise TableError(shared_keys(self.pipeline, schema, told))
