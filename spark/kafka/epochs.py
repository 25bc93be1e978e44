"""What a new epoch sends again: changes that an older one sent already.

A streamer that is killed goes on behind its last checkpoint; where it goes on from another server, in a new epoch,
what had been sent behind that checkpoint comes again with a greater `_seq`, which no mark cuts. It is known by its
GTID, its place in the transaction, and all that it says. Changes without a GTID are never taken for known.

What is not known lands with the greater `_seq`, and then everything that the epoch says of its key afterwards does so
too: else the row would end as a change said that the older epoch sent long before its last one. That happens where a
change says something else the second time, by a transform that was mended meanwhile or asks the clock.
"""

from __future__ import annotations

from datetime import timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

# Beside GTID, ordinal and row; the texts too, since another server may divide a transaction's rows into other events.
ALIKE = ("topic", "partition", "tbl", "op", "key", "before", "after")
USED = (*ALIKE, "day", "gtid", "_seq")
ROW = ("topic", "partition", "tbl", "key")
# A MariaDB's replica may tell another commit time: that of another statement of the transaction.
DAYS = 1  # by which the two may differ


def first_sent(fresh: DataFrame, landed: DataFrame | None) -> DataFrame:
    """`fresh` without the changes that an older epoch sent before, to the same partition: in the same batch, or in
    `landed`, which is `_changes`."""
    rows = fresh.select(*USED)
    known, truncated, anew = rows, rows.where("op = 't'"), None
    if landed is not None:
        parts = fresh.select("tbl", "day", "_seq.epoch").distinct().collect()
        mine = landed.select(*USED).where(fn.col("tbl").isin(sorted({part["tbl"] for part in parts})))
        days = {part["day"] + timedelta(n) for part in parts for n in range(-DAYS, DAYS + 1)}
        known = known.unionByName(mine.where(fn.col("day").isin(sorted(days))))
        truncated = truncated.unionByName(mine.where("op = 't'"))
        anew = mine.where(fn.col("_seq.epoch") >= min(part["epoch"] for part in parts))
    cuts = truncated.groupBy("tbl", fn.col("_seq.epoch").alias("_epoch")).agg(fn.min("_seq").alias("_cut"))
    # From the new epoch's first truncation of a table on, all of the table lands again: where one partition has the
    # truncation for the first time, it empties the table of what the others have behind it.
    cut = (fn.col("tbl") == fn.col("_of")) & (fn.col("_seq.epoch") == fn.col("_epoch"))
    given = fresh.join(fn.broadcast(cuts.withColumnRenamed("tbl", "_of")), cut, "left")
    again = given.alias("given").join(known.alias("known"), _same(), "left_semi").select("topic", "partition", "offset")
    told = given.join(again.withColumn("_again", fn.lit(True)), ["topic", "partition", "offset"], "left")
    return told.join(_turned(told, anew), _of_its_row(), "left").where(_lands()).select(*fresh.columns)


def _turned(told: DataFrame, anew: DataFrame | None) -> DataFrame:
    """Of each row (a key) that an epoch says something new of, where that begins: `_turn`."""
    new = told.where("_again is null").select(*ROW, "_seq")
    if anew is not None:
        new = new.unionByName(anew.select(*ROW, "_seq"))
    of = [fn.col(name).alias(f"_of_{name}") for name in ROW]
    epoch = fn.col("_seq.epoch").alias("_of_epoch")
    return new.where("key is not null").groupBy(*of, epoch).agg(fn.min("_seq").alias("_turn"))


def _of_its_row() -> Column:
    same = fn.col("_seq.epoch") == fn.col("_of_epoch")
    for name in ROW:
        same = same & (fn.col(name) == fn.col(f"_of_{name}"))
    return same


def _lands() -> Column:
    return fn.col("_again").isNull() | fn.coalesce(fn.col("_turn") < fn.col("_seq"), fn.lit(False))


def _same() -> Column:
    sent = (fn.col("given._cut").isNull() | (fn.col("given._seq") < fn.col("given._cut"))) & (
        fn.col("known._seq.epoch") < fn.col("given._seq.epoch")
    )
    for name in ("gtid", "_seq.event", "_seq.row"):
        sent = sent & (fn.col(f"given.{name}") == fn.col(f"known.{name}"))
    for name in ALIKE:
        sent = sent & fn.col(f"given.{name}").eqNullSafe(fn.col(f"known.{name}"))
    return sent
