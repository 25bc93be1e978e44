"""What a part's changes are folded onto: the rows that the table's snapshot had read, as the lake's table was at the
version that applied it, or none where every row has a change since: that one carries the whole row."""

from __future__ import annotations

from dataclasses import dataclass

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from contract.names import quoted
from contract.schema import TableSchema
from contract.steps import SNAPSHOT_TABLE
from spark.errors import TableError
from spark.evolution.renames import renames_of, since, with_new_names
from spark.lake.applied import Applied
from spark.lake.erasures import Erasures
from spark.lake.lake import Lake
from spark.lake.stopped import Name
from spark.merging.parts import Part, empty, texts_of
from spark.tables.merge import sequence
from spark.tables.schema import OWN, fitted

SKEW_MS = 60_000  # between the clocks of the job and of the lake's store
INSTEAD = f"take the rows from MySQL instead (source mysql, --source mysql), or {SNAPSHOT_TABLE}"
ALL = "All of a table, and a range of it, need them; keys, or the rows of a time, that have all changed since do not"


@dataclass
class Base:
    """Of one table, whose snapshot is `applied`. `needs`: why the rows are needed, in words. Raises TableError."""

    spark: SparkSession
    lake: Lake
    name: Name
    applied: Applied
    needs: str = ALL

    def rows(self, part: Part, changes: DataFrame | None, columns: dict[str, str]) -> DataFrame:
        """`changes`: those since, all of them. `columns`: the lake table's, name -> type."""
        if not self.applied.id or (part.keyed and part.where is None and not self._lacks(part, changes)):
            return empty(self.lake.frame(self.lake.table(*self.name))).select(*map(quoted, columns), *OWN)
        return self._read(part.shape, columns)

    def gone(self) -> TableError:
        return TableError(
            f"{'.'.join(self.name)}: the rows that the snapshot {self.applied.id} had read are not in the lake any "
            f"more (version {self.applied.version} of the table): a vacuum removed them, or they are of more than a "
            f"week ago, which Delta does not give. {self.needs}. Nothing was written: {INSTEAD}"
        )

    def _lacks(self, part: Part, changes: DataFrame | None) -> int:
        """How many of the part's keys have no change since, and may be among the snapshot's rows."""
        left = texts_of(self.spark, part.folder(self.lake))
        if changes is not None:
            if not changes.where("op = 't'").isEmpty():  # no row of before is there any more
                return 0
            left = left.join(changes.select("key"), "key", "left_anti")
        count = left.count()
        self.needs = f"Of the keys that were asked for {count:,} did not change since: their rows are among those alone"
        return count

    def _read(self, shape: TableSchema, columns: dict[str, str]) -> DataFrame:
        if self.applied.version is None:
            raise TableError(
                f"{'.'.join(self.name)}: the snapshot {self.applied.id} was applied by an older version of Headrace, "
                f"which did not say where its rows are: {INSTEAD}"
            )
        path = self.lake.table(*self.name)
        self._refuse_another_log(path)
        try:
            then = self.spark.read.format("delta").option("versionAsOf", str(self.applied.version)).load(path)
        except Exception as error:
            raise self.gone() from error
        then = with_new_names(then, since(renames_of(self.lake), shape, self.applied.floor))
        lacking = {name: kind for name, kind in columns.items() if name not in then.columns}
        base = fitted(then, columns).withColumns({n: fn.lit(None).cast(kind) for n, kind in lacking.items()})
        base = base.where(fn.col("_seq") <= sequence(self.applied.floor)).select(*map(quoted, columns), *OWN)
        # A row that was erased has no deletion among the changes any more, which would take it out.
        return Erasures(self.lake).unstaged(base, shape, self.applied.floor, self.applied.erasures)

    def _refuse_another_log(self, path: str) -> None:
        """A table whose log was begun anew has another commit of this number."""
        history = DeltaTable.forPath(self.spark, path).history()
        mine = history.where(fn.col("version") == fn.lit(self.applied.version))
        made = mine.select(fn.unix_millis("timestamp").alias("at")).first()
        if made is None or made["at"] > self.applied.applied_at + SKEW_MS:
            raise self.gone()
