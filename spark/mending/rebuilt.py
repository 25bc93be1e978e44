"""A part's rows out of what the lake, or Kafka, keeps: those that the table's snapshot had read, and the changes since.

The rows of the snapshot are those of the lake's table at the version that applied it; the changes behind its P0 come
out of `_changes`, or out of Kafka's topic again. They are folded up to the lake's own checkpoint, which is the part's
P0; what came later is in `_changes` when the part is put in its place.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from contract import kept_history, names
from contract.checkpoint import Checkpoint
from contract.kept_history import Kept
from contract.names import quoted
from contract.schema import TableSchema
from contract.status import LakeStatus
from contract.steps import SNAPSHOT_TABLE
from spark.errors import TableError
from spark.evolution.renames import renames_of, since, with_new_names
from spark.evolution.shapes import shape_of
from spark.lake.applied import Applied, AppliedSnapshots
from spark.lake.broken import broken_file
from spark.lake.erasures import Erasures
from spark.lake.lake import Lake
from spark.lake.stopped import Name
from spark.lake.unfinished import Beating
from spark.mending.final import folded
from spark.mending.from_kafka import sent
from spark.mending.unknown_times import refuse_ended, refuse_removed
from spark.merging.mended import mended
from spark.merging.parts import CHANGES, KAFKA, Chosen, Part, new_id, put, sweep, write_keys
from spark.merging.tables import USED
from spark.tables.merge import behind, misfit, sequence
from spark.tables.schema import OWN, Schemas, columns_of, fitted

MOST_KEYS = 100_000  # of a time
SKEW_MS = 60_000  # between the clocks of the job and of the lake's store
INSTEAD = f"take the rows from MySQL instead (source mysql, --source mysql), or {SNAPSHOT_TABLE}"


@dataclass
class Rebuild:
    """Of one table, which the lake's `status` has. `source`: `changes` or `kafka`. Raises TableError."""

    spark: SparkSession
    lake: Lake
    status: LakeStatus
    schemas: Schemas
    name: Name
    source: str = CHANGES
    by: str = ""

    def __post_init__(self) -> None:
        self.told = ".".join(self.name)
        found = AppliedSnapshots(self.lake).tables.get(self.name)
        if found is None or self.status.checkpoint is None:
            raise TableError(f"{self.told} was never snapshotted, so its rows are not in its changes alone: {INSTEAD}")
        self.applied: Applied = found
        self.p0: Checkpoint = self.status.checkpoint

    @cached_property
    def shape(self) -> TableSchema:
        """As of `shape_of`."""
        if (found := shape_of(self.lake, self.schemas, self.name)) is None:
            raise TableError(
                f"{self.told}: the schema topic has no shape of it, as of a table of which nothing was changed yet, "
                f"and its snapshot {self.applied.id} was applied by an older version of Headrace, which did not keep "
                f"that one's. Nothing was written: {INSTEAD}"
            )
        return found

    def stage(self, chosen: Chosen) -> Part:
        """Stages the chosen rows as they are to be."""
        shape = self.shape
        sweep(self.lake)
        part = Part(
            id=new_id(), pipeline=self.p0.pipeline, job="backfill", by=self.by, source=self.source, shape=shape,
            told=chosen.told, where=chosen.where, keyed=chosen.keys is not None, texts=False, p0=self.p0, p1="",
            snapshot=self.applied.id, erasures=Erasures(self.lake).known.number,
        )  # fmt: skip
        folder = part.folder(self.lake)
        try:
            with Beating(self.lake, folder):
                if chosen.keys is not None:
                    write_keys(self.lake, folder, chosen.keys)
                inside = part.inside(self.spark, self.lake)
                self._refuse_mended(part)
                self._written(inside(self._rows(part)), f"{folder}/rows")
                count = self.spark.read.parquet(f"{folder}/rows").count()
                put(self.lake, part.model_copy(update={"count": count}))
        except BaseException:
            self.lake.delete(folder)
            raise
        return part

    def changes(self) -> DataFrame | None:
        """The table's changes behind the snapshot, up to the lake's checkpoint; None where nothing was changed yet."""
        if self.source == KAFKA:
            found = sent(self.spark, self.lake, self.name, self.applied.floor)
        else:
            self._refuse_removed()
            if (landed := self._landed()) is None:
                return None
            found = Erasures(self.lake).without(landed).select(*USED)  # one that was killed has left them there
        mine = behind(found, self.name, self.applied.floor)
        return mine.where(fn.col("_seq") < sequence(_place(self.p0)))

    def keys(self, since: datetime, until: datetime) -> tuple[str, ...]:
        """Of the rows that changed in that time, the first moment of it included; before the snapshot, too."""
        landed = self._landed()
        refuse_removed(self.lake, self.name, self._kept(), landed, since)
        if landed is None:
            return ()
        told = landed.select(*USED)
        if self.source == KAFKA:
            told = told.unionByName(sent(self.spark, self.lake, self.name, self.applied.floor).select(*USED))
        mine = told.where((fn.col("tbl") == self.told) & (fn.col("db") == self.name[0]) & (fn.col("op") != "t"))
        mine = mine.where((fn.col("ts") >= fn.lit(since)) & (fn.col("ts") < fn.lit(until)))
        refuse_ended(self.lake, self.name, landed, mine)
        found = mine.select("key").distinct().orderBy("key").limit(MOST_KEYS + 1).collect()
        if len(found) > MOST_KEYS:
            raise TableError(
                f"more than {MOST_KEYS:,} rows of {self.told} changed in that time: choose a shorter one, or take the "
                "whole table. Nothing was written"
            )
        return tuple(row["key"] for row in found)

    def _landed(self) -> DataFrame | None:
        version = self.status.changes_version
        return None if version is None else self.lake.frame(self.lake.changes, version)

    def _rows(self, part: Part) -> DataFrame:
        path = self.lake.table(*self.name)
        columns = columns_of(self.spark, path)
        if self.applied.version is None:
            raise TableError(
                f"{self.told}: the snapshot {self.applied.id} was applied by an older version of Headrace, which did "
                f"not say where its rows are: {INSTEAD}"
            )
        self._refuse_another_log(path)
        try:
            then = self.spark.read.format("delta").option("versionAsOf", str(self.applied.version)).load(path)
        except Exception as error:
            raise self._gone() from error
        then = with_new_names(then, since(renames_of(self.lake), part.shape, self.applied.floor))
        lacking = {name: kind for name, kind in columns.items() if name not in then.columns}
        base = fitted(then, columns).withColumns({n: fn.lit(None).cast(kind) for n, kind in lacking.items()})
        base = base.where(fn.col("_seq") <= sequence(self.applied.floor)).select(*map(quoted, columns), *OWN)
        # A row that was erased has no deletion among the changes any more, which would take it out.
        base = Erasures(self.lake).unstaged(base, part.shape, self.applied.floor, self.applied.erasures)
        return folded(base, self.changes(), part.shape, self.schemas, columns)

    def _kept(self) -> Kept | None:
        """Of `_changes` older ones may be removed (retention.py), which is noted before they go."""
        return kept_history.parse(self.lake.text(self.lake.at(kept_history.FILE))).tables.get(self.told)

    def _refuse_removed(self) -> None:
        kept = self._kept()
        if kept and kept.begins > self.applied.p0_ms:
            raise TableError(
                f"{self.told}: the changes of before {kept.since:%Y-%m-%d %H:%M} UTC were removed "
                f"(maintenance.history_days), and the snapshot {self.applied.id} is older. Nothing was written: "
                f"{INSTEAD}"
            )
        if kept and kept.gone and kept.gone > tuple(self.applied.floor):
            raise TableError(
                f"{self.told}: changes behind the snapshot {self.applied.id} were removed (maintenance.history_days): "
                f"the source's clock went back, by which they were older. Nothing was written: {INSTEAD}"
            )

    def _refuse_another_log(self, path: str) -> None:
        """A table whose log was begun anew has another commit of this number."""
        history = DeltaTable.forPath(self.spark, path).history()
        mine = history.where(fn.col("version") == fn.lit(self.applied.version))
        made = mine.select(fn.unix_millis("timestamp").alias("at")).first()
        if made is None or made["at"] > self.applied.applied_at + SKEW_MS:
            raise self._gone()

    def _written(self, rows: DataFrame, folder: str) -> None:
        try:
            rows.write.parquet(folder)
        except Exception as error:
            if told := misfit(self.name, error):  # Spark's own text has the row and its value
                raise TableError(f"{told}. Nothing was written") from error
            file = broken_file(error)
            if file is None or names.CHANGES in file:
                raise
            raise self._gone() from error

    def _gone(self) -> TableError:
        return TableError(
            f"{self.told}: the rows that the snapshot {self.applied.id} had read are not in the lake any more (version "
            f"{self.applied.version} of the table): a vacuum removed them, or they are of more than a week ago, which "
            f"Delta does not give. Nothing was written: {INSTEAD}"
        )

    def _refuse_mended(self, part: Part) -> None:
        if count := mended(self.spark, self.lake, part, self.applied):
            raise TableError(
                f"{self.told}: {count:,} of these rows were mended from the source since the snapshot "
                f"{self.applied.id}, and no change says what they are. Nothing was written: {INSTEAD}"
            )


def _place(checkpoint: Checkpoint) -> list[int]:
    return [*checkpoint.place, -1, -1]
