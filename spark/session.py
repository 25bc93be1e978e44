"""The one Spark session of a job: what every job needs set, whoever submits it."""

from __future__ import annotations

from pyspark.sql import SparkSession

SETTINGS = {
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",  # a value that does not fit is an error, never a silent null
    "spark.sql.readSideCharPadding": "false",  # else ENUM and CHAR come padded with blanks
    "spark.scheduler.mode": "FAIR",  # tables are merged side by side
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",  # few files rather than many small ones
    "spark.databricks.delta.snapshotPartitions": "2",  # the log of a table is small; the default 50 costs seconds
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
}
LOCAL = {"spark.sql.shuffle.partitions": "4", "spark.ui.enabled": "false"}


def session(name: str, extra: dict[str, str] | None = None) -> SparkSession:
    """The running session, or a new one. A setting given to spark-submit is kept where we only prefer another."""
    builder = SparkSession.builder.appName(name)
    for key, value in {**SETTINGS, **(extra or {})}.items():
        builder = builder.config(key, value)
    if not SparkSession.getActiveSession():
        builder = _local(builder, extra or {})
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def _local(builder: SparkSession.Builder, extra: dict[str, str]) -> SparkSession.Builder:
    from pyspark import SparkConf

    given = SparkConf()
    if (extra.get("spark.master") or given.get("spark.master", "local") or "local").startswith("local"):
        for key, value in LOCAL.items():
            if not given.contains(key):
                builder = builder.config(key, value)
    return builder
