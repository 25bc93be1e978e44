"""A part's rows out of what the lake, or Kafka, keeps: those that the table's snapshot had read, and the changes since.

Where the rows of the snapshot are, or that they are not needed, base.py says; the changes behind its P0 come out of
`_changes`, or out of Kafka's topic again. They are folded up to the lake's own checkpoint, which is the part's P0; what
came later is in `_changes` when the part is put in its place. A table without a snapshot is made of its changes alone,
where it is known to have been made empty (made.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from contract import kept_history, names
from contract.checkpoint import Checkpoint
from contract.kept_history import Kept
from contract.schema import TableSchema
from contract.status import LakeStatus
from spark.errors import TableError
from spark.evolution.shapes import shape_of
from spark.lake.applied import Applied, AppliedSnapshots
from spark.lake.broken import broken_file
from spark.lake.erasures import Erasures
from spark.lake.foreign_commits import same_rows
from spark.lake.lake import Lake
from spark.lake.stopped import Name
from spark.lake.unfinished import Beating
from spark.mending.base import INSTEAD, Base
from spark.mending.final import folded
from spark.mending.from_kafka import sent
from spark.mending.made import before, made
from spark.mending.unfound import Unfound
from spark.mending.unknown_times import refuse_ended, refuse_removed
from spark.merging.mended import mended
from spark.merging.parts import CHANGES, KAFKA, Chosen, Part, begin, new_id, put, sweep, write_keys
from spark.merging.tables import USED
from spark.tables.merge import behind, misfit, sequence
from spark.tables.rows import placed
from spark.tables.schema import Schemas, columns_of

MOST_KEYS = 100_000  # of a time


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
    unfound: Unfound | None = None

    def __post_init__(self) -> None:
        self.told = ".".join(self.name)
        if self.status.checkpoint is None:
            raise TableError(f"{self.told}: the lake has no place in the source's changes yet: {INSTEAD}")
        self.p0: Checkpoint = self.status.checkpoint

    @cached_property
    def applied(self) -> Applied:
        """The snapshot; of a table without one, where it was made."""
        found = AppliedSnapshots(self.lake).tables.get(self.name)
        if found := found or made(self.spark, self.lake, self.name, self.p0):
            return found
        raise self._unproven()

    @cached_property
    def _base(self) -> Base:
        return Base(self.spark, self.lake, self.name, self.applied)

    @property
    def _begin(self) -> str:
        return f"the snapshot {self.applied.id}" if self.applied.id else "the beginning of the table"

    def _unproven(self) -> TableError:
        return TableError(
            f"{self.told} has no snapshot, and nothing proves that all of its rows are in its changes: that takes a "
            "CREATE TABLE of it, without IF NOT EXISTS, in the lake's table _schema_changes, behind which it was "
            f"followed by the rules of now, and no change of before. Nothing was written: {INSTEAD}"
        )

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
                begin(self.lake, part)
                if chosen.keys is not None:
                    write_keys(self.lake, folder, chosen.keys)
                inside = part.inside(self.spark, self.lake)
                self._refuse_mended(part)
                self._written(inside(self._rows(part)), f"{folder}/rows")
                part.count = self.spark.read.parquet(f"{folder}/rows").count()
                if self.unfound:
                    self.unfound(part)
                put(self.lake, part)
        except BaseException:
            self.lake.delete(folder)
            raise
        return part

    def changes(self) -> DataFrame | None:
        """The table's changes behind the snapshot; None where nothing was changed yet."""
        if self.source == KAFKA:
            found = self._sent()
        else:
            self._refuse_removed()
            if (landed := self._landed()) is None:
                return None
            found = Erasures(self.lake).without(landed).select(*USED)  # one that was killed has left them there
        if not self.applied.id and before(found, self.name, self.applied.floor):
            raise self._unproven()
        return behind(found, self.name, self.applied.floor)

    def keys(self, since: datetime, until: datetime) -> tuple[str, ...]:
        """Of the rows that changed in that time, the first moment of it included; before the snapshot, too."""
        landed = self._landed()
        refuse_removed(self.lake, self.name, self._kept(), landed, since)
        if landed is None:
            return ()
        told = landed.select(*USED)
        if self.source == KAFKA:
            told = told.unionByName(self._sent().select(*USED))
        mine = told.where((fn.col("tbl") == self.told) & (fn.col("db") == self.name[0]) & (fn.col("op") != "t"))
        mine = mine.where((fn.col("ts") >= fn.lit(since)) & (fn.col("ts") < fn.lit(until)))
        refuse_ended(self.lake, self.name, landed, mine)
        changed = placed(mine.select("key").distinct(), self.shape)  # of a row that was mended in the source since
        found = changed.orderBy("key").limit(MOST_KEYS + 1).collect()
        if len(found) > MOST_KEYS:
            raise TableError(
                f"more than {MOST_KEYS:,} rows of {self.told} changed in that time: choose a shorter one, or take the "
                "whole table. Nothing was written"
            )
        return tuple(row["key"] for row in found)

    def _sent(self) -> DataFrame:
        return sent(self.spark, self.lake, self.name, self.applied.floor, self._begin)

    def _landed(self) -> DataFrame | None:
        version = self.status.changes_version
        if version is None:
            return None
        return self.lake.frame(self.lake.changes, same_rows(self.lake, self.lake.changes, version))

    def _rows(self, part: Part) -> DataFrame:
        """Up to the lake's checkpoint: the changes behind it come to them when the part is put in its place."""
        columns, changes = columns_of(self.spark, self.lake.table(*self.name)), self.changes()
        base = self._base.rows(part, changes, columns)
        mine = None if changes is None else changes.where(fn.col("_seq") < sequence(_place(self.p0)))
        return folded(base, mine, part.shape, self.schemas, columns)

    def _kept(self) -> Kept | None:
        """Of `_changes` older ones may be removed (retention.py), which is noted before they go."""
        return kept_history.parse(self.lake.text(self.lake.at(kept_history.FILE))).tables.get(self.told)

    def _refuse_removed(self) -> None:
        kept = self._kept()
        if kept and kept.begins > self.applied.p0_ms:
            raise TableError(
                f"{self.told}: the changes of before {kept.since:%Y-%m-%d %H:%M} UTC were removed "
                f"(maintenance.history_days), and {self._begin} is older. Nothing was written: {INSTEAD}"
            )
        if kept and kept.gone and kept.gone > tuple(self.applied.floor):
            raise TableError(
                f"{self.told}: changes behind {self._begin} were removed (maintenance.history_days): "
                f"the source's clock went back, by which they were older. Nothing was written: {INSTEAD}"
            )

    def _written(self, rows: DataFrame, folder: str) -> None:
        try:
            rows.write.parquet(folder)
        except Exception as error:
            if told := misfit(self.name, error):  # Spark's own text has the row and its value
                raise TableError(f"{told}. Nothing was written") from error
            file = broken_file(error)
            if file is None or names.CHANGES in file:
                raise
            raise self._base.gone() from error

    def _refuse_mended(self, part: Part) -> None:
        if count := mended(self.spark, self.lake, part, self.applied):
            raise TableError(
                f"{self.told}: {count:,} of these rows were mended from the source since "
                f"{self._begin}, and no change says what they are. Nothing was written: {INSTEAD}"
            )


def _place(checkpoint: Checkpoint) -> list[int]:
    return [*checkpoint.place, -1, -1]
