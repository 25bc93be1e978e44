"""What checks noted long ago goes from `_checks` and `_differences`: whole months, so that files are written anew for
it once in a month alone. Each table's last check stays, however old, and with it all that is still open: it notes again
what the ones before had found.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from delta.tables import DeltaTable
from pyspark.sql import Column, Row, SparkSession
from pyspark.sql import functions as fn

from contract import names
from spark.conditions import any_of
from spark.lake.lake import Lake
from spark.proof.differences import EQUAL

# A trend is of a year. A difference is noted again by each check that finds it still, so these grow faster.
KEPT_DAYS = {names.CHECKS: 400, names.DIFFERENCES: 100}


def trim(spark: SparkSession, lake: Lake, name: str) -> None:
    """Of one of the two; nothing of another table. For who has the lake's slot."""
    days, checks = KEPT_DAYS.get(name), lake.at(names.CHECKS)
    if days is None or not lake.is_table(checks):
        return
    judged = spark.read.format("delta").load(checks).where(fn.col("check") == EQUAL)
    last = fn.max("run").alias("run"), fn.unix_seconds(fn.max_by("at", "run")).alias("at")
    found = judged.groupBy("tbl").agg(*last).collect()
    old = _old(found, _month(found, days))
    if not spark.read.format("delta").load(lake.at(name)).where(old).isEmpty():
        DeltaTable.forPath(spark, lake.at(name)).delete(old)


def _month(last: Sequence[Row], days: int) -> datetime:
    """The first moment of the month up to which is kept, counted from the newest check where a clock is ahead of it."""
    today = min(time.time(), max((row["at"] for row in last), default=0))
    first = datetime.fromtimestamp(today, UTC) - timedelta(days=days)
    return first.replace(day=1, hour=0, minute=0, second=0, microsecond=0)


def _old(last: Sequence[Row], before: datetime) -> Column:
    kept = [row for row in last if row["at"] < before.timestamp()]
    each = [(fn.col("tbl") == row["tbl"]) & (fn.col("run") == row["run"]) for row in kept]
    return (fn.col("at") < fn.lit(before)) & ~any_of(each)
