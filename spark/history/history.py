"""The past of the lake's tables, from `_changes`: a table as of a time, its rows' versions, who changed what when.

Nothing but the lake is asked. The values have the types of the table as it is, and the names: where the lake's table
followed a renamed column by itself, older changes have it, too. History begins with the first change that the lake has
of the pipeline, or where the table joined, or behind what Kafka had removed (lost.py), or where a maintenance has
removed what was before (retention.py), or behind a statement that took or brought rows without a change (breaks.py).
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, partial

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as fn

from contract import altered, breaks, lost_changes, mended, names, steps
from contract.breaks import Break
from contract.names import quoted
from contract.renames import FILE, of, spellings
from contract.status import LakeStatus, parse
from spark.errors import LakeError
from spark.evolution.renames import renames_of
from spark.history.going import staying
from spark.history.past_parts import PART, Parts
from spark.history.past_values import PastValues, values
from spark.history.retention import history_of
from spark.lake.applied import AppliedSnapshots
from spark.lake.lake import Lake
from spark.lake.manifests import manifests
from spark.landing.commit_times import counted, first_after, first_behind
from spark.tables.changes_only import refused, shape_of, telling
from spark.tables.merge import sequence
from spark.tables.schema import OWN

VERSION = ("valid_from", "valid_to", "gtid")


@dataclass(frozen=True)
class History:
    """One table's. `db`, `table`: its names in the source. Raises LakeError where the lake does not have the table."""

    spark: SparkSession
    lake: Lake
    db: str
    table: str

    @property
    def name(self) -> str:
        return f"{self.db}.{self.table}"

    @property
    def _path(self) -> str:
        return self.lake.table(self.db, self.table)

    @property
    def changes_only(self) -> bool:
        """Whether the lake keeps the table's changes alone: then there is nothing but `changes`."""
        return self.lake.pipeline.changes_only(self.db, self.table)

    def now(self, version: int | None = None) -> DataFrame:
        """The table's rows as they are, or were in a version, without the lake's own columns."""
        if self.changes_only:
            raise refused((self.db, self.table))
        if not self.lake.is_table(self._path):
            raise LakeError(f"the lake has no table {self.name}: check its name, or {steps.SNAPSHOT_TABLE}")
        return self.lake.frame(self._path, version).drop(*OWN)

    def as_of(self, moment: datetime) -> DataFrame:
        """The table's rows before the first of its transactions that was committed after `moment` (aware): each row
        that changed since is put back to what it was before the first of its later changes. Raises LakeError where
        the lake cannot know it; says on stderr how many rows were mended since, which it shows as they are now, and
        whether it was altered, and why it may not be what the source has."""
        if moment.tzinfo is None:
            raise LakeError(f"{moment} has no time zone: give one, such as 2026-11-22 10:42:00+00:00")
        # Of these versions for good, the changes of a later one: a row that changed since is put back all the same.
        now, changes = self.now(self.lake.version(self._path)), self._changes(self.lake.version(self.lake.changes))
        self._refuse_before_the_beginning(moment, changes)
        self._tell_doubts()
        self._tell_mended(moment)
        self._tell_altered(moment)
        mine = self._mine(changes)
        if (since := first_after(mine, moment)) is None:
            return now
        if since.to_come:
            raise LakeError(
                f"{self.name}: the source's clock was ahead: {since.gtid or 'a change'} says that it was committed at "
                f"{since.ts.isoformat()}, so no time tells what came behind it. The table as it is, and its changes in "
                "their order, tell it"
            )
        later = mine.where(since.on)
        if not later.where("op = 't'").isEmpty():
            raise LakeError(
                f"{self.name} was truncated after {moment.isoformat()}: which rows it had is not in the changes. "
                "Delta's own time travel may still have them (versionAsOf)"
            )
        first = _numbered(later).where("_n = 1 and before is not null")
        back = self._past.parsed(first, now, "before").select(*values("_before", now))
        return self._untouched(now, later).unionByName(back)

    def versions(self) -> DataFrame:
        """Slowly changing rows: every known version of each row with `valid_from` (null: from before the history's
        beginning), `valid_to` (null: it is the present one) and the `gtid` that made it. A table that has such a column
        itself makes ours `_valid_from`."""
        self._tell_doubts()
        now, mine = self.now(), counted(self._mine())
        since, until, gtid = (names.free(name, {*map(str.lower, now.columns)}) for name in VERSION)
        parts = Parts(self._breaks, lambda place: first_behind(self._changes(), place))
        mine = parts.numbered(mine)
        rows = _numbered(mine.where("op <> 't'"), PART)
        following = Window.partitionBy("key", PART).orderBy("_seq")
        ended = fn.least(fn.lead("ts").over(following), self._truncated(mine), parts.ended)
        rows = rows.withColumn("_ended", ended)
        present = [fn.col("ts").alias(since), fn.col("_ended").alias(until), fn.col("gtid").alias(gtid)]
        made = self._past.parsed(rows.where("op <> 'd'"), now, "after").select(*values("_after", now), *present)
        nothing, never = fn.lit(None).cast("string"), fn.lit(None).cast("timestamp")
        began = [never.alias(since), fn.col("ts").alias(until), nothing.alias(gtid)]
        older = self._past.parsed(rows.where("_n = 1 and before is not null"), now, "before")
        older = older.select(*values("_before", now), *began)
        still = self._untouched(now, mine.where(parts.last)).withColumns({since: never, until: never, gtid: nothing})
        return made.unionByName(older).unionByName(still)

    def changes(self) -> DataFrame:
        """What each transaction did: `gtid`, `ts`, `op` (c, u, d, t), `key` (JSON), the names of the columns that it
        `changed`, and the row `before` and `after` as structs of the table's types. A truncation is one change, though
        each partition of its topic has it."""
        now = shape_of(self.lake, (self.db, self.table)) if self.changes_only else self.now()
        images = {name: fn.struct(*values(f"_{name}", now)) for name in ("before", "after")}
        told = [fn.when(fn.col(name).isNotNull(), made).alias(name) for name, made in images.items()]
        mine = self._mine()
        once = mine.where("op = 't'").dropDuplicates(["_seq"])
        mine = mine.where("op <> 't'").unionByName(once)
        rows = self._past.parsed(mine, now, *images).select("gtid", "ts", "_seq", "op", "key", *told)
        differing = [
            f"if(before.{quoted(name)} <=> after.{quoted(name)}, null, '{_escaped(name)}')" for name in now.columns
        ]
        changed = fn.expr(f"array_compact(array({', '.join(differing)}))").alias("changed")
        return rows.select("gtid", "ts", "op", "key", changed, "before", "after", "_seq").orderBy("_seq").drop("_seq")

    def _changes(self, version: int | None = None) -> DataFrame:
        """Of all tables."""
        if not self.lake.is_table(self.lake.changes):
            raise LakeError(
                f"the lake {self.lake.root} has no changes yet: {steps.compaction(self.lake.pipeline)}, first"
            )
        return self.lake.frame(self.lake.changes, version)

    def _mine(self, changes: DataFrame | None = None) -> DataFrame:
        """Since the history begins: changes of before are on their way out, one by one."""
        mine = (changes or self._changes()).where((fn.col("tbl") == self.name) & (fn.col("db") == self.db))
        return staying(mine, history_of(self.lake))

    @property
    def _status(self) -> LakeStatus | None:
        text = self.lake.text(self.lake.status)
        return parse(text) if text else None

    def _has_snapshot(self) -> bool:
        """Which nobody has told of yet whether it is ahead: the status of a table says so."""
        staged = (one for manifest in manifests(self.lake) for one in manifest.tables)
        applied = AppliedSnapshots(self.lake).tables
        return (self.db, self.table) in applied or any(self.name == f"{one.db}.{one.table}" for one in staged)

    @cached_property
    def _past(self) -> PastValues:
        named = of(renames_of(self.lake), self.db, self.table)
        return PastValues(named, self._breaks, spellings(self.lake.text(self.lake.at(FILE)), self.db, self.table))

    @cached_property
    def _breaks(self) -> list[Break]:
        return breaks.of(breaks.parse(self.lake.text(self.lake.at(FILE))), self.db, self.table)

    def _untouched(self, now: DataFrame, changes: DataFrame) -> DataFrame:
        """The rows of the table without a change here."""
        keys = changes.where("op <> 't'").select("key").distinct()
        names = keys.select(fn.expr("json_object_keys(key)").alias("names")).distinct().limit(2).collect()
        if not names:
            return now
        if len(names) > 1:
            raise LakeError(
                f"{self.name}: its primary key changed meanwhile: rows before and after do not compare. "
                "Ask for a time behind that"
            )
        wanted = now.select(*[quoted(name) for name in names[0]["names"]])
        touched = self._past.parsed(keys, wanted, "key").select(*values("_key", wanted))
        return now.join(touched, list(wanted.columns), "left_anti")

    def _truncated(self, mine: DataFrame) -> Column:
        """When the table was truncated first after the row's `_seq`; null where it was not."""
        cuts = mine.where("op = 't'").select("_seq", "ts").orderBy("_seq").collect()
        if not cuts:
            return fn.lit(None).cast("timestamp")
        pairs = [
            fn.struct(sequence(cut["_seq"]).alias("_seq"), fn.lit(cut["ts"].astimezone(UTC)).alias("ts"))
            for cut in cuts
        ]
        return fn.get(fn.filter(fn.array(*pairs), lambda cut: cut["_seq"] > fn.col("_seq")), fn.lit(0))["ts"]

    def _tell_doubts(self) -> None:
        """Why the rows, and so those of before, may not be what the source has."""
        table = self._status.tables.get(self.name) if self._status else None
        for doubt in table.doubts() if table else ():
            print(f"{self.name}: {doubt}", file=sys.stderr, flush=True)

    def _tell_mended(self, moment: datetime) -> None:
        path = self.lake.at(names.REPAIRS)
        if not self.lake.is_table(path):
            return
        repairs = self.lake.frame(path).where((fn.col("tbl") == self.name) & (fn.col("db") == self.db))
        repairs = repairs.where((fn.col("source") == mended.SOURCE) & (fn.col("at") > fn.lit(moment)))
        if rows := repairs.select("key").distinct().count():
            print(mended.note(self.name, rows, moment.isoformat()), file=sys.stderr, flush=True)

    def _tell_altered(self, moment: datetime) -> None:
        path = self.lake.at(names.SCHEMA_CHANGES)
        if not self.lake.is_table(path):
            return
        mine = self.lake.frame(path).where((fn.col("tbl") == self.table) & (fn.col("db") == self.db))
        mine = mine.where(fn.expr(altered.WHICH) & (fn.col("ts") > fn.lit(moment)))
        if statements := mine.select("id").distinct().count():
            print(altered.note(self.name, statements, moment.isoformat()), file=sys.stderr, flush=True)

    def _refuse_before_the_beginning(self, moment: datetime, changes: DataFrame) -> None:
        status = self._status
        checkpoint = status.checkpoint if status else None
        joined = checkpoint.since(self.db, self.table) if checkpoint else None
        lost = lost_changes.until(
            self.lake.text(self.lake.at(lost_changes.FILE)), self.lake.pipeline, self.db, self.table
        )
        since = max(filter(None, (joined, lost, breaks.last(self._breaks))), default=None)
        if status and status.refused:
            raise LakeError(f"{self.name} has no past for now: {status.refused}")
        table = status.tables.get(self.name) if status else None
        if not table and self.lake.pipeline.tables.match(self.db, self.table) and self._has_snapshot():
            step = steps.compaction(self.lake.pipeline)
            raise LakeError(f"{self.name} has no past for now: no compaction came to its end with it yet: {step}")
        if table and (told := table.no_past()):
            raise LakeError(f"{self.name} {told}")
        kept = history_of(self.lake).since(self.name)  # asked behind the changes' version, since it is noted first
        began = first_behind(changes, since) if since or kept is None else kept
        began = max(began, kept) if began and kept else began
        if began is None or moment < began:
            told = began.isoformat() if began else "with the next change"
            raise LakeError(
                f"the history of {self.name} begins {told}: what was before {moment.isoformat()} is not known"
            )


def _numbered(changes: DataFrame, *parts: str) -> DataFrame:
    """With `_n`, the change's number among those of its key (and of its part of the past), from 1."""
    return changes.withColumn("_n", fn.row_number().over(Window.partitionBy("key", *parts).orderBy("_seq")))


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace("'", "\\'")


def views(spark: SparkSession, lake: Lake, tables: Iterable[tuple[str, str]]) -> list[str]:
    """Makes of each table the temporary views `<table>`, `<table>_history`, `<table>_changes`. Gives their names. Where
    one of the tables is called `orders_history` itself, that of `orders` is `_orders_history`. Of a table of which the
    lake keeps the changes alone the first two say so where they are read. Raises LakeError where two of the tables have
    the same name."""
    wanted, made = list(tables), list[str]()
    taken = [table.lower() for _, table in wanted]
    if shared := sorted({name for name in taken if taken.count(name) > 1}):
        raise LakeError(f"a view has its table's name alone, and several of these are {', '.join(shared)}: make one's")
    for db, table in wanted:
        history = History(spark, lake, db, table)
        no_rows = partial(telling, spark, lake, (db, table)) if history.changes_only else None
        parts: dict[str, Callable[[], DataFrame]] = {table: no_rows or history.now}
        parts[names.free(f"{table}_history", taken)] = no_rows or history.versions
        parts[names.free(f"{table}_changes", taken)] = history.changes
        for name, rows in parts.items():
            rows().createOrReplaceTempView(quoted(name))
            made.append(name)
    return made
