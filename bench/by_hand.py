"""The compaction that people write by hand, as a peer of bench.lake: the records of one topic, from Kafka into a Delta
table, by Structured Streaming and one MERGE a batch.

It has what such jobs have: the newest change a key and batch, by the order that the records tell. It keeps no history,
knows one shape of one table, believes that Kafka is whole, and has no proof. Spark's settings are Spark's own, with as
many shuffle partitions as this machine has use for.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as fn

from stack.maven import spark_jars

ROOT = Path(__file__).parents[1]
ROW = (
    "id bigint, customer bigint, status string, amount decimal(10,2), note string, created timestamp_ntz, "
    "changed timestamp, ratio double"
)
ENVELOPE = f"op string, before struct<{ROW}>, after struct<{ROW}>, source struct<seq:array<bigint>>"
BATCH = 1_000_000  # records, as the product's own
SETTINGS = {
    "spark.master": "local[2]",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "4",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
}


def started(memory: str, java: str) -> SparkSession:
    builder = SparkSession.builder.appName("by-hand").config("spark.jars", ",".join(map(str, spark_jars())))
    settings = {**SETTINGS, "spark.driver.memory": memory, "spark.driver.extraJavaOptions": java}
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def merge(batch: DataFrame, table: str) -> None:
    change = batch.select(fn.from_json(fn.col("value").cast("string"), ENVELOPE).alias("v")).where("v is not null")
    row = fn.coalesce("v.after", "v.before").alias("row")
    rows = change.select("v.op", fn.col("v.source.seq").alias("seq"), row).select("op", "seq", "row.*")
    newest = Window.partitionBy("id").orderBy(fn.col("seq").desc())
    last = rows.withColumn("n", fn.row_number().over(newest)).where("n = 1").drop("n")
    (
        DeltaTable.forPath(batch.sparkSession, table)
        .alias("t")
        .merge(last.alias("c"), "t.id = c.id")
        .whenMatchedDelete("c.op = 'd' and c.seq > t.seq")
        .whenMatchedUpdateAll("c.op <> 'd' and c.seq > t.seq")
        .whenNotMatchedInsertAll("c.op <> 'd'")
        .execute()
    )


def work(kafka: str, topic: str, folder: str, memory: str, java: str) -> dict[str, Any]:
    spark, table = started(memory, java), f"{folder}/orders"
    began = time.monotonic()
    empty = spark.createDataFrame([], f"op string, seq array<bigint>, {ROW}")
    empty.write.format("delta").save(table)
    options = {
        "kafka.bootstrap.servers": kafka, "kafka.isolation.level": "read_committed", "subscribe": topic,
        "startingOffsets": "earliest", "maxOffsetsPerTrigger": str(BATCH),
    }  # fmt: skip
    records = spark.readStream.format("kafka").options(**options).load()
    query = records.writeStream.foreachBatch(lambda batch, number: merge(batch, table)).trigger(availableNow=True)
    query.option("checkpointLocation", f"{folder}/checkpoint").start().awaitTermination()
    seconds = time.monotonic() - began
    found = spark.read.format("delta").load(table).agg(fn.count("*").alias("n"), fn.sum("amount").alias("amount"))
    [told] = found.collect()
    return {"seconds": seconds, "rows": told["n"], "amount": str(told["amount"])}


def run(kafka: str, topic: str, folder: Path, memory: str, java: str) -> dict[str, Any]:
    """In a process of its own: the seconds that it took behind Spark's start, how many rows the table has then, and the
    sum of their amounts."""
    given = [kafka, topic, str(folder), memory, f"-Duser.timezone=UTC {java}"]
    command = [sys.executable, "-m", "bench.by_hand", *given]
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"the job by hand failed:\n{done.stderr[-3000:]}")
    facts: dict[str, Any] = json.loads(done.stdout.partition("figures: ")[2])
    return facts


if __name__ == "__main__":
    print("figures: " + json.dumps(work(*sys.argv[1:])), flush=True)
