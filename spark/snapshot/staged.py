"""A table's staged rows: a Delta table in the form of the lake's own, so that it can take that one's place.

A snapshot appends to it, group of chunks by group (table_read.py); the hand-off takes it (handoff.py).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as fn

from contract.checkpoint import Checkpoint
from contract.names import quoted
from contract.schema import TableSchema
from contract.steps import SNAPSHOT_TABLE
from spark.errors import LakeError, TableStoppedError
from spark.lake.broken import broken_file
from spark.lake.commits import commits
from spark.lake.cut_commits import take_back_commits
from spark.lake.lake import Lake
from spark.tables.merge import misfit, sequence
from spark.tables.rows import beside, keyed, values
from spark.tables.schema import OWN, columns_of, create, fields

WRITE, MERGE = "WRITE", "MERGE"  # as Delta's log names an append, and what a hand-off takes in
SNAPSHOT = "headrace.snapshot"  # the table's property that says whose rows they are
MANY, SMALL = 200, 4 * 1024 * 1024  # files, of which a table is not to have so many that are smaller, in bytes


class Added(NamedTuple):
    """One append. `version`: of the staged table behind it. `nulled`: for how many values the lake has a null."""

    version: int
    rows: int
    nulled: int


@dataclass
class StagedRows:
    """`path`: their folder. `snapshot`: its id. `counted`: the version whose rows were last found to be whole."""

    spark: SparkSession
    lake: Lake
    path: str
    snapshot: str
    counted: int = field(default=0, init=False)
    _at: int | None = field(default=None, init=False)  # the version that the next append comes behind

    def begin(self, schema: TableSchema) -> None:
        """Makes the table where there is none."""
        if not self.lake.is_table(self.path):
            create(self.spark, self.path, fields(schema), self.lake.deletion_vectors, {SNAPSHOT: self.snapshot})
        self._at = self.lake.version(self.path)

    def back_to(self, version: int | None) -> None:
        """Takes out what was appended behind the version; everything where that is None."""
        if version is None:
            self.lake.delete(self.path)
            self.lake.forget_logs()
            return
        if "://" not in self.path and [*take_back_commits(Path(self.path), 0, version)]:
            self.lake.forget_logs()
        if self.lake.version(self.path) != version:
            DeltaTable.forPath(self.spark, self.path).restoreToVersion(version)

    def append(self, wires: DataFrame, schema: TableSchema, p0: Checkpoint) -> Added:
        """Rows whose structs of wire values are in the column `_wire`. Raises TableStoppedError for one that the lake
        cannot have, LakeError where another job appends, too."""
        seen = Observation()
        told = beside("values")
        nulled = fn.sum(fn.col(told) - values(schema))
        at = sequence([*p0.place, -1, -1]).alias("_seq"), fn.timestamp_millis(fn.lit(p0.ts_ms)).alias("_ts")
        made = wires.select(*keyed("_wire", schema), values(schema, "_wire").alias(told))
        made = made.observe(seen, fn.count(fn.lit(1)).alias("rows"), nulled.alias("nulled"))
        # So many readers; asked last, since rows are handed on between stages, and else each as a struct of texts.
        rows = made.drop(told).select("*", *at).coalesce(self.lake.pipeline.snapshot.parallelism)
        try:
            rows.write.format("delta").mode("append").save(self.path)
        except Exception as error:
            if (text := misfit((schema.db, schema.table), error)) is None:
                raise
            raise TableStoppedError(text) from error
        version = self.lake.version(self.path)
        assert version is not None
        many = self._at is not None and version > self._at + 1
        if self._at is not None and many and self.operations(self._at).count(WRITE) > 1:
            raise LakeError(
                f"another job writes {self.path}, too: one that was thought dead, and stood still. It ends by itself; "
                "run the snapshot again, which takes out what it wrote and goes on behind what was read before"
            )
        self._at = version
        return Added(version, seen.get["rows"], seen.get["nulled"] or 0)

    def rows(self, version: int | None) -> DataFrame:
        """Of the version that the last part was noted with."""
        return self.spark.read.format("delta").option("versionAsOf", version or 0).load(self.path)

    def whole(self, schema: TableSchema, rows: int, version: int | None) -> DataFrame:
        """All of the rows, by the columns' names of now. Raises TableStoppedError where they are not as many: a row
        that is missing here would leave the lake."""
        name, found, self.counted = f"{schema.db}.{schema.table}", self._count(version), version or 0
        if found != rows:
            raise TableStoppedError(
                f"{name}: the snapshot {self.snapshot} read {rows:,} rows, and its folder {self.path} has {found:,}: "
                f"something removed the others. The table is as it was; {SNAPSHOT_TABLE} again"
            )
        sent = [column.sent or column.name for column in schema.columns]
        if columns_of(self.spark, self.path) != dict(zip(sent, fields(schema).values(), strict=True)):
            raise TableStoppedError(
                f"{name}: lake.unrepresentable was another when the snapshot {self.snapshot} was read, and so are the "
                f"types of its rows: {SNAPSHOT_TABLE}, or put the setting back"
            )
        names = [fn.col(quoted(old)).alias(c.name) for old, c in zip(sent, schema.columns, strict=True)]
        return self.rows(version).select(*names, *OWN)

    def scattered(self) -> bool:
        """Whether a limit of rows a second has left many small files."""
        facts = DeltaTable.forPath(self.spark, self.path).detail().select("numFiles", "sizeInBytes")
        [[files, size]] = facts.collect()
        return bool(files > MANY and size < files * SMALL)

    def operations(self, behind: int) -> list[str]:
        """What the commits behind the version were, the oldest first."""
        return [one.operation for one in commits(self.lake, self.path, behind)]

    def moved_to(self, path: str) -> bool:
        """Whether a run that died since moved them there."""
        return moved_from(self.lake, path) == self.snapshot

    def _count(self, version: int | None) -> int:
        """Of the rows that are there: Delta's log counts those of a file that is gone, too."""
        if not self.lake.is_table(self.path):
            return 0
        try:
            [[found]] = self.rows(version).select(fn.count("_seq.epoch")).collect()
        except Exception as error:
            if broken_file(error) is None:
                raise
            return 0
        return int(found)


def moved_from(lake: Lake, path: str) -> str | None:
    """The id of the snapshot whose staged rows took the place of the table there; None where none did."""
    if not lake.is_table(path):
        return None
    [[properties]] = DeltaTable.forPath(lake.spark, path).detail().select("properties").collect()
    found: str | None = (properties or {}).get(SNAPSHOT)
    return found
