"""From when on a change of a table counts: the latest time that the source's clock had shown by then.

Commit times do not only grow. A clock is set back; MariaDB tells when a statement began; `mysqlbinlog` repeats a
transaction with its time of long ago; a replica's source passes its primaries' times on. By them alone a transaction
counted before one that it came behind, and a past was made of some rows with it and others without, which the source
never had. Pure: DataFrames in, DataFrames out.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as fn

from spark.tables.merge import sequence

AHEAD = timedelta(1)  # by which the source's clock may be ahead of the reader's


class Later(NamedTuple):
    """The first change that counts after a time."""

    seq: tuple[int, ...]
    ts: datetime
    gtid: str | None

    @property
    def on(self) -> Column:
        """From it on. By the file Delta passes by what is older."""
        epoch, file = self.seq[:2]
        near = fn.expr(f"_seq.epoch > {epoch} OR _seq.epoch = {epoch} AND _seq.file >= {file}")
        return near & (fn.col("_seq") >= sequence(self.seq))

    @property
    def to_come(self) -> bool:
        """Its clock was ahead: by it nothing behind the change counts as done yet."""
        return self.ts > datetime.now(UTC) + AHEAD


def first_after(changes: DataFrame, moment: datetime) -> Later | None:
    """Of one table's changes: with it, all behind it count after `moment` too."""
    later = changes.where(fn.col("ts") > fn.lit(moment)).agg(fn.min(fn.struct("_seq", "ts", "gtid")).alias("first"))
    row = later.first()
    if row is None or row["first"] is None:
        return None
    seq, ts, gtid = row["first"]
    return Later(tuple(seq), ts.astimezone(UTC), gtid)


def first_behind(changes: DataFrame, since: tuple[int, int, int] | None) -> datetime | None:
    """When the first of all tables' changes was committed, of those behind a place."""
    if since:
        here = fn.struct("_seq.epoch", "_seq.file", "_seq.pos")
        changes = changes.where(here >= fn.struct(*[fn.lit(n).cast("bigint") for n in since]))
    first = changes.agg(fn.min_by("ts", "_seq").alias("ts")).first()
    return first["ts"].astimezone(UTC) if first and first["ts"] else None


def counted(changes: DataFrame) -> DataFrame:
    """One table's changes, their `ts` the greatest up to each. File by file of the binlog, so that no task has all."""
    before = Window.orderBy("_epoch", "_file").rowsBetween(Window.unboundedPreceding, -1)
    file = [fn.col("_seq.epoch").alias("_epoch"), fn.col("_seq.file").alias("_file")]
    tops = changes.groupBy(*file).agg(fn.max("ts").alias("_top")).withColumn("_top", fn.max("_top").over(before))
    inside = Window.partitionBy("_epoch", "_file").orderBy("_seq")
    inside = inside.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    placed = changes.select("*", *file).join(fn.broadcast(tops), ["_epoch", "_file"])
    ts = fn.greatest(fn.max("ts").over(inside), "_top")
    return placed.withColumn("ts", ts).drop("_epoch", "_file", "_top")
