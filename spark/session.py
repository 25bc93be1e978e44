"""The one Spark session of a job: what every job needs set, whoever submits it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from spark.lake.delta_log import KEPT, NEW_TABLES

OURS = "headrace"  # what every commit says whose it is; foreign.py looks for those that do not
DISTINCT = ("key", "before", "after", "gtid", "ts", "offset", "_seq.pos", "_seq.event", "_seq.row")  # of `_changes`
SETTINGS = {
    "spark.databricks.delta.commitInfo.userMetadata": OURS,
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",  # a value that does not fit is an error, never a silent null
    "spark.sql.readSideCharPadding": "false",  # else ENUM and CHAR come padded with blanks
    "spark.ui.enabled": "false",  # it would listen on every address; event logs are not touched by this
    "spark.scheduler.mode": "FAIR",  # tables are merged side by side
    "spark.sql.adaptive.coalescePartitions.parallelismFirst": "false",  # few files rather than many small ones
    # But no core idle while another merges what both could: of texts, so much is a file of some megabytes.
    "spark.sql.adaptive.advisoryPartitionSizeInBytes": "32m",
    # A task has the files of so many partitions open before it sorts its rows by them, which spills to disk; each has
    # a row group in memory, so those are smaller than Parquet's 128 MB.
    "spark.sql.maxConcurrentOutputFileWriters": "8",
    "spark.hadoop.parquet.block.size": str(16 * 1024 * 1024),
    "spark.sql.parquet.compression.codec": "zstd",  # a third of the bytes of Spark's snappy, in the same time
    # Of columns whose every value is another one, a dictionary costs time and saves nothing.
    **{f"spark.hadoop.parquet.enable.dictionary#{name}": "false" for name in DISTINCT},
    NEW_TABLES: KEPT,
    "spark.databricks.delta.snapshotPartitions": "2",  # the log of a table is small; the default 50 costs seconds
    "spark.sql.streaming.numRecentProgressUpdates": "1000",
    # Nothing is ever put there, but Spark makes the folder, by default in the one that a job is started from.
    "spark.sql.warehouse.dir": Path(tempfile.gettempdir()).as_uri(),
}
SHUFFLES = "spark.sql.shuffle.partitions"


def session(name: str, extra: dict[str, str] | None = None) -> SparkSession:
    """The running session, or a new one. `extra` settings go before ours."""
    builder = SparkSession.builder.appName(name)
    for key, value in {**SETTINGS, **(extra or {})}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    _hush(spark)
    if str(spark.sparkContext.master).startswith("local") and not spark.sparkContext.getConf().contains(SHUFFLES):
        spark.conf.set(SHUFFLES, "4")  # Spark's own 200 is for clusters
    return spark


def _hush(spark: SparkSession) -> None:
    """Delta tells of each vacuum on Java's standard output. Not under spark-submit, which passes the job's own words
    on by that."""
    if "PYSPARK_GATEWAY_PORT" in os.environ:
        return
    java: Any = spark._jvm
    nowhere = java.java.io.OutputStream.nullOutputStream()
    java.java.lang.System.setOut(java.java.io.PrintStream(nowhere))
