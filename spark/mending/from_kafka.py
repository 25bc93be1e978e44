"""A table's changes out of Kafka's topic again, as compaction landed them: the records below the offsets that it has
read, each once.

Raises LakeError where Kafka does not have all of them any more.
"""

from __future__ import annotations

import json

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from contract import names
from spark.errors import LakeError
from spark.kafka.broker import Broker, Ends
from spark.kafka.epochs import first_sent
from spark.kafka.records import once, shaped
from spark.kafka.settings import spark_options
from spark.kafka.topic_places import in_json
from spark.lake.erasures import Erasures
from spark.lake.lake import Lake
from spark.lake.stopped import Name
from spark.landing.changes import BOUNDS, MARK_COLUMNS, Landing


def sent(spark: SparkSession, lake: Lake, name: Name, floor: list[int]) -> DataFrame:
    """Columns of `_changes`, from before `floor` (a `_seq`) on."""
    pipeline, topic = lake.pipeline, names.events_topic(lake.pipeline, *name)
    ends = {at: end for at, end in Landing(spark, pipeline, lake).read().items() if at[0] == topic}
    begins = Broker(pipeline).begins(ends)
    options = {
        **BOUNDS,
        **spark_options(pipeline),
        "kafka.bootstrap.servers": pipeline.kafka.bootstrap,
        "kafka.isolation.level": "read_committed",
        "assign": json.dumps({topic: sorted(number for _, number in ends)}),
        "startingOffsets": in_json(begins),
        "endingOffsets": in_json({at: max(end, begins[at]) for at, end in ends.items()}),
        "failOnDataLoss": "true",
    }
    if not ends:
        raise LakeError(
            f"compaction has read nothing of the topic {topic}: take the rows from changes or mysql instead"
        )
    records = spark.read.format("kafka").options(**options).load()
    changes = shaped(records, pipeline.name, strict=False).where(
        (fn.col("tbl") == ".".join(name)) & (fn.col("db") == name[0])
    )
    _refuse_purged(changes, begins, ends, floor, ".".join(name))
    return Erasures(lake).without(first_sent(once(changes, spark.createDataFrame([], MARK_COLUMNS)), None))


def _refuse_purged(changes: DataFrame, begins: Ends, ends: Ends, floor: list[int], told: str) -> None:
    """In a partition `_seq` only grows: where its first record is before the floor, so are all that are gone."""
    purged = {number for (_, number), begin in begins.items() if begin}
    if not purged:
        return
    first = changes.groupBy("partition").agg(fn.min("_seq").alias("seq")).collect()
    known = {row["partition"] for row in first if list(row["seq"]) <= floor}
    if lost := sorted(purged - known):
        topic = next(iter(ends))[0]
        raise LakeError(
            f"{told}: Kafka has deleted records of {topic} (partition {', '.join(map(str, lost))}) that may be younger "
            "than the table's snapshot, so that the rows cannot be made from it. Nothing was written: take them from "
            "changes or mysql instead, and raise kafka.retention_hours for the next time"
        )
