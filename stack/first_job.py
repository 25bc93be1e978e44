"""What most jobs do with Spark, on a few rows and one table after the other: for the classes that it loads."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql.functions import col, concat_ws, count, crc32, desc, from_json, hex, row_number
from pyspark.sql.functions import sum as total

from spark.session import session

ROWS = [(number, f'{{"id": {number}, "name": "n{number}"}}', number % 3) for number in range(20)]


def main(folder: str) -> None:
    spark = session("classes")
    changes, table = str(Path(folder, "changes")), str(Path(folder, "table"))
    rows = spark.createDataFrame(ROWS, "at long, text string, part int")
    rows.write.format("delta").partitionBy("part").save(changes)
    first_state(spark, changes).write.format("delta").save(table)
    target = DeltaTable.forPath(spark, table)
    for change in (first_state(spark, changes).where("id > 10"), spark.range(15, 30).selectExpr("id", "'new' name")):
        merge = target.alias("t").merge(change.select("id", "name").alias("c"), "t.id = c.id")
        merge.whenMatchedDelete("c.id = 12").whenMatchedUpdateAll().whenNotMatchedInsertAll().execute()
    target.optimize().executeCompaction()
    folded = spark.read.format("delta").load(table).groupBy((col("id") % 4).alias("chunk"))
    folded.agg(count("*"), total(crc32(concat_ws(",", hex("name"))))).orderBy("chunk").collect()
    java: Any = spark.sparkContext._gateway
    spark.stop()
    java.shutdown()
    java.proc.stdin.close()  # which ends it
    java.proc.wait()  # the classes are written at its very end


def first_state(spark: SparkSession, changes: str) -> DataFrame:
    last = Window.partitionBy("row.id").orderBy(desc("at"))
    rows = spark.read.format("delta").load(changes).withColumn("row", from_json("text", "id long, name string"))
    return rows.withColumn("n", row_number().over(last)).where("n = 1").select("row.id", "row.name")


if __name__ == "__main__":
    main(sys.argv[1])
