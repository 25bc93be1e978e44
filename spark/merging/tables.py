"""Step 2: `_changes` -> the current tables.

In: the new commits of `_changes`, batch by batch. Out: `<lake>/<db>/<table>`, live rows only, each with the
`_seq` and `_ts` of the change that made it. Per table and batch one change a key, the greatest `_seq`, is
merged, and only where it is newer than the row; so a repeated batch changes nothing. Changes at or below the
floor of the table's snapshot are in its rows already and left out: merged, they would bring back rows that the
source has removed without row events since. So are those before the table's last truncation (`op` t), whose rows go.

A table that cannot be merged is stopped: the others go on, its changes stay in `_changes`, and later runs try again
from the first change that was not merged, a slow try not in each of them (tries.py). One of which the lake keeps the
changes alone waits so, too.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import groupby

from delta.tables import DeltaTable
from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from contract.schema import TableSchema
from spark.errors import TableStoppedError
from spark.evolution.schema_change_rows import Place
from spark.failpoints import reached
from spark.lake.lake import Lake
from spark.lake.stopped import WAIT, Name, Stopped, StoppedTables
from spark.lake.truncated import Truncated
from spark.landing.batches import run_batches
from spark.landing.foreign import Looked
from spark.landing.landed_since import landed_since
from spark.merging.beginning import begins_at, begun
from spark.merging.table_batches import Batch, parts_of
from spark.merging.tries import Tries, grounds
from spark.tables.changes_only import KEPT, keep, note_missing
from spark.tables.merge import behind, latest, merge, sequence, together
from spark.tables.refused import unfit
from spark.tables.rows import nulled
from spark.tables.schema import Schemas, prepare

THREADS = 4
USED = ("db", "tbl", "key", "op", "after", "schema", "_seq", "ts")
READ = {
    # Commits that rewrite `_changes` without a new change in it (an erasure) are no news here.
    "skipChangeCommits": "true",
    # All that waits is one batch, in which a key's greatest `_seq` counts. Where partitions were added to a topic, a
    # key's last changes come by another one than those before, and may land first: a delete that is merged in a batch
    # of its own leaves nothing behind that would keep the older row out.
    "maxFilesPerTrigger": str(2**31 - 1),
}


@dataclass
class Merging:
    """One run of step 2. `floors`: the `_seq` up to which each table's changes are in its snapshot. `look`: tells of
    `_changes`, and raises LakeError where somebody else wrote into it. `dropped`: where the source dropped tables.
    `looked`: up to where the run merges it.
    `merged` counts the changes per table, `rows` what they added to its rows; nobody counted those of the tables in
    `emptied`. `freed`: the tables that were stopped and are not any more; of their changes that were merged, some may
    have been before. `nulled`: for how many values of the merged rows the lake has a null. `clock`: gives Unix s, for
    `tries`, which are those of stopped tables."""

    spark: SparkSession
    lake: Lake
    schemas: Schemas
    look: Callable[[], Looked]
    floors: Mapping[Name, list[int]] = field(default_factory=dict)
    dropped: Mapping[Name, Place] = field(default_factory=dict)
    merged: dict[Name, int] = field(default_factory=dict)
    rows: dict[Name, int] = field(default_factory=dict)
    emptied: set[Name] = field(default_factory=set)
    freed: set[Name] = field(default_factory=set)
    nulled: dict[Name, int] = field(default_factory=dict)
    clock: Callable[[], float] = time.time
    stopped: StoppedTables = field(init=False)
    truncated: Truncated = field(init=False)
    looked: Looked = field(init=False)
    tries: Tries = field(init=False)

    def __post_init__(self) -> None:
        self.stopped, self.truncated = StoppedTables(self.lake), Truncated(self.lake)
        self.looked = self.look()
        self.tries = Tries(self.stopped, self._grounds, self.clock)

    def run(self) -> None:
        """Merges every commit of `_changes` that is new."""
        if self.looked.version is None:
            return
        if (begin := begins_at(self.lake, self.looked)) is None:
            return
        source = self.spark.readStream.format("delta").options(**READ, **begin).load(self.lake.changes)
        run_batches(source.select(*USED), self.lake.checkpoint("tables"), self._batch, self.lake.settle)
        reached("merged")
        begun(self.lake)

    def retry(self) -> None:
        """Tries the stopped tables again, but for those that are no longer the pipeline's."""
        for name, stop in list(self.stopped.tables.items()):
            if self._past_help(name):
                self.stopped.release(name)
                continue
            only = self._only(name)
            if not self._wanted(name) or (only and stop.kept and stop.reason == KEPT):
                continue
            if not (only and stop.kept) and not self.tries.made(name, stop, self._again):
                continue
            if only:
                self._keep(name, stop.since)
            else:
                self.stopped.release(name)
                self.freed.add(name)
        note_missing(self.spark, self.lake, self.schemas)

    def _batch(self, changes: DataFrame, number: int, query: str) -> None:
        looked = self.look()  # what the batch has was there by now
        if not looked.undone:
            # Not kept in memory: to read a table's own files again costs a fraction of that.
            return self._merge_all(changes)
        looked = replace(looked, merged=self.looked.merged)
        new = landed_since(self.lake, looked).select(*USED).persist()  # to find these rows costs much more
        try:
            self._merge_all(new)
        finally:
            new.unpersist()

    def _merge_all(self, changes: DataFrame) -> None:
        parts = [part for part in parts_of(changes) if not self._waits(part)]
        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(inheritable_thread_target(self.spark)(lambda part: self._merge(changes, part)), parts))

    def _wanted(self, name: Name) -> bool:
        return self.lake.pipeline.tables.match(*name)

    def _only(self, name: Name) -> bool:
        return self.lake.pipeline.changes_only(*name)

    def _keep(self, name: Name, since: list[int]) -> None:
        keep(self.spark, self.lake, self.stopped, self.schemas, name, since)

    def _count(self, part: Batch) -> None:
        self.merged[part.name] = self.merged.get(part.name, 0) + part.changes

    def _waits(self, part: Batch) -> bool:
        """Whether the part is left for later: its table is stopped, or excluded (should it come back, its changes are
        merged from here on)."""
        stop = self.stopped.tables.get(part.name)
        if not self._wanted(part.name) or (stop and not (stop.kept and self._only(part.name))):
            self.stopped.stop(part.name, part.since, stop.reason if stop else "tables.include does not have it")
            if stop and stop.kept:
                self._count(part)
            return True
        return False

    def _past_help(self, name: Name) -> bool:
        """Whether the table never had a key, and the source has dropped it since: nobody can give it one."""
        db, table = name
        shapes, place = self.schemas.all(db, table), self.dropped.get(name)
        if place is None or self._only(name) or not shapes or any(one.key for one in shapes):
            return False
        if (version := self.look().version) is None:
            return False
        later = behind(self.lake.frame(self.lake.changes, version), name, [*place, -1, -1])
        return not self.lake.is_table(self.lake.table(db, table)) and later.isEmpty()

    def _grounds(self, name: Name) -> str:
        return grounds(self.lake, name, self.schemas.all(*name), self.floors.get(name))

    def _again(self, name: Name, stop: Stopped) -> bool:
        """Merges all that waits of the table, and says whether that went."""
        if (version := self.look().version) is None:
            return True
        *place, row = stop.since
        mine = behind(self.lake.frame(self.lake.changes, version).select(*USED), name, [*place, row - 1])
        return all(self._merge(mine, part) for part in parts_of(mine))

    def _merge(self, changes: DataFrame, part: Batch) -> bool:
        db, table = part.name
        if self._only(part.name):
            self._keep(part.name, part.since)
            self._count(part)
            return True
        self.spark.sparkContext.setLocalProperty("spark.scheduler.pool", f"{db}.{table}")
        try:
            self._merge_versions(changes.where((fn.col("tbl") == f"{db}.{table}") & (fn.col("db") == db)), part)
        except Exception as error:
            text = str(error) if isinstance(error, TableStoppedError) else unfit(self.lake, part.name, error)
            if text is None:
                raise
            self.stopped.stop(part.name, part.since, f"{text}; {WAIT}")
            self.tries.failed.add(part.name)
            return False
        if not (stop := self.stopped.tables.get(part.name)) or not stop.kept:
            self._count(part)
        return True

    def _floor(self, part: Batch) -> list[int]:
        """Up to where the table's changes are left out. A truncation of the batch is carried out."""
        floor = max(self.floors.get(part.name, []), self.truncated.of(part.name))
        if not part.truncated or part.truncated < floor:
            return floor
        self.truncated.note(part.name, part.truncated)  # first: a run that dies here comes by again
        path = self.lake.table(*part.name)
        if self.lake.is_table(path):
            DeltaTable.forPath(self.spark, path).delete(fn.col("_seq") < sequence(part.truncated))
            reached("rows truncated")
        self.emptied.add(part.name)
        return part.truncated

    def _merge_versions(self, changes: DataFrame, part: Batch) -> None:
        db, table = part.name
        floor = self._floor(part)
        versions = sorted(version for version, last in part.versions.items() if last > floor)
        if not versions:
            return
        changes = changes.where(fn.col("op") != "t")
        changes = changes.where(fn.col("_seq") > sequence(floor)) if floor else changes
        schemas = [self.schemas.of(db, table, version) for version in versions]
        path, newest = self.lake.table(db, table), self.schemas.newest(db, table)
        # Where the primary key or the type of its columns changed, the keys' texts are no longer of one kind (a
        # DATETIME(3) has more digits than the DATETIME that it was): one merge a kind, in order.
        for _, alike in groupby(schemas, key=lambda schema: [schema.column(name) for name in schema.key]):
            group = list(alike)
            columns: dict[str, str] = {}
            for schema in group:
                columns = prepare(self.spark, path, schema, newest, self.lake.deletion_vectors)
            last = latest(changes.where(fn.col("schema").isin([schema.version for schema in group])))
            more = merge(self.spark, path, together(last, group, columns), group[-1].key, list(columns))
            self.rows[part.name] = self.rows.get(part.name, 0) + more
            self._count_nulled(last, part, group)

    def _count_nulled(self, last: DataFrame, part: Batch, schemas: list[TableSchema]) -> None:
        likely = [schema for schema in schemas if schema.version in part.zeros]
        count = sum(nulled(last.where(fn.col("schema") == schema.version), "after", schema) for schema in likely)
        if count:
            self.nulled[part.name] = self.nulled.get(part.name, 0) + count
