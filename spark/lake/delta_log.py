"""A Delta table's log: its newest state as Delta has it, and for how long the commits are kept.

A table that a looping compaction writes gets up to 17,000 commits a day, each of which is a file or two, and by itself
Delta keeps them for 30 days. They are good for time travel alone. That goes no further back than a week, by
`delta.deletedFileRetentionDuration` and since `maintenance.vacuum_hours` is as much at most; Delta refuses to keep the
log for less. The day more is for readers that began by then, and for clocks that differ.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

from pyspark.sql import SparkSession

from contract.names import quoted
from contract.pipeline_maintenance import DAY_HOURS, MOST_HOURS
from spark.failpoints import reached

LOG: Final = "delta.logRetentionDuration"
FILES: Final = "delta.deletedFileRetentionDuration"
NEW_TABLES: Final = f"spark.databricks.delta.properties.defaults.{LOG.removeprefix('delta.')}"  # a session's setting
KEPT: Final = f"interval {MOST_HOURS // DAY_HOURS + 1} days"


def newest(spark: SparkSession, path: str) -> Any:
    """Delta's own object of the table as it is."""
    log = _of(spark, path)
    return log.update(*(getattr(log, f"update$default${n}")() for n in (1, 2, 3)))


def kept_for(spark: SparkSession, path: str) -> timedelta:
    """How long Delta keeps a commit of the table; the first checkpoint behind that removes it."""
    return timedelta(milliseconds=_of(spark, path).deltaRetentionMillis(newest(spark, path).metadata()))


def last_transaction(spark: SparkSession, path: str, app: str) -> int:
    """The number of the last that the table has of that application; -1 where it has none."""
    found = newest(spark, path).transactions().get(app)
    return int(found.get()) if found.isDefined() else -1


def shorten(spark: SparkSession, path: str) -> None:
    """Of a table that is older than this rule. Whoever has said for how long its log or its files are kept is right."""
    said = newest(spark, path).metadata().configuration()
    if said.contains(LOG) or said.contains(FILES):
        return
    spark.sql(f"ALTER TABLE delta.{quoted(path)} SET TBLPROPERTIES ('{LOG}' = '{KEPT}')")
    reached("log shortened")


def _of(spark: SparkSession, path: str) -> Any:
    jvm: Any = spark._jvm
    return jvm.org.apache.spark.sql.delta.DeltaLog.forTable(spark._jsparkSession, path)
