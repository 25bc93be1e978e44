"""A Delta table's files: many small ones made few, rows that are marked as gone taken out, and what no version of the
last days needs any more removed.

Each is a commit, or the removal of files, that changes no row; killed in its middle it leaves files that no version
names, which a later vacuum removes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from contract.pipeline_maintenance import Maintenance
from spark.failpoints import reached
from spark.lake.delta_log import newest
from spark.lake.lake import Lake
from spark.lake.marked_rows import purged
from spark.lake.settings import settings
from spark.tables.schema import at

MB = 1_048_576


@dataclass(frozen=True)
class Files:
    """Of a table as it is. `bytes`: of all of them; `small`: how many the partition has that has most of them; `rows`,
    `marked`: in the files, and how many of those are gone."""

    count: int
    bytes: int
    small: int
    rows: int
    marked: int


def files_of(spark: SparkSession, path: str, small_bytes: int = 0) -> Files:
    """From the table's log alone. `small_bytes`: a file of less is small."""
    listed = DataFrame(newest(spark, path).allFiles().toDF(), spark)
    files = listed.withColumn("part", fn.col("partitionValues").cast("string"))
    parts = files.groupBy("part").agg(
        fn.count("*").alias("n"),
        fn.sum("size").alias("bytes"),
        fn.count_if(fn.col("size") < small_bytes).alias("small"),
        fn.sum(fn.get_json_object("stats", "$.numRecords").cast("bigint")).alias("rows"),
        fn.sum("deletionVector.cardinality").alias("marked"),
    )
    found = parts.agg(fn.sum("n"), fn.sum("bytes"), fn.max("small"), fn.sum("rows"), fn.sum("marked")).first()
    return Files(*(int(number or 0) for number in found or [0] * 5))


def join_small_files(spark: SparkSession, path: str, rules: Maintenance) -> None:
    """Where there are many; and takes the rows out that are marked as gone, where those are many."""
    small = rules.file_mb * MB // 2
    found = files_of(spark, path, small)
    if found.marked and found.marked * 100 >= rules.deleted_percent * found.rows:
        with settings(spark, _sizes(rules)):
            purged(spark, path)
        reached("marked rows taken out")
        found = files_of(spark, path, small)
    if found.small >= rules.small_files:
        with settings(spark, _sizes(rules)):
            spark.sql(f"OPTIMIZE {at(path)}").collect()
        reached("small files joined")


def _sizes(rules: Maintenance) -> dict[str, Any]:
    """Two small files always fit into one of the wanted size, so none is written anew each time."""
    optimize = "spark.databricks.delta.optimize"
    return {
        f"{optimize}.minFileSize": rules.file_mb * MB // 2,
        f"{optimize}.maxFileSize": rules.file_mb * MB,
        f"{optimize}.maxDeletedRowsRatio": rules.deleted_percent / 100,
    }


def vacuum(spark: SparkSession, lake: Lake, path: str, hours: float) -> int:
    """Removes the files that no version of the last `hours` needs, and gives how many bytes that freed. Nobody may
    write the table meanwhile: a file whose commit is still to come would count as nobody's."""
    lake.settle()  # files go that newer ones stand for
    before = _size(lake, path)
    wanted = {
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",  # the pipeline file's own bounds hold
        "spark.databricks.delta.vacuum.retentionWindowIgnore.enabled": "false",  # else only 0 counts, not 24
        "spark.databricks.delta.vacuum.logging.enabled": "false",  # two commits a day that say nothing
        # Spark's default lists the folders in 10,000 tasks, which takes a minute.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": spark.sparkContext.defaultParallelism,
    }
    with settings(spark, wanted):
        spark.sql(f"VACUUM {at(path)} RETAIN {hours} HOURS").collect()
    reached("old files removed")
    return before - _size(lake, path)


def _size(lake: Lake, path: str) -> int:
    """Without the log, to which each reading may add."""
    return lake.size(path) - lake.size(f"{path}/_delta_log")
