"""A table's changes out of Kafka's topics again, as compaction landed them: the records below the offsets that it has
read, each once. There is one topic, and those of before where kafka.topic was edited.

Raises TableError where Kafka does not have all of them any more.
"""

from __future__ import annotations

import json

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from contract import names
from spark.errors import TableError
from spark.kafka.broker import Broker
from spark.kafka.epochs import first_sent
from spark.kafka.offsets import Ends
from spark.kafka.records import once, shaped
from spark.kafka.settings import spark_options
from spark.kafka.topic_places import in_json
from spark.lake.erasures import Erasures
from spark.lake.lake import Lake
from spark.lake.stopped import Name
from spark.lake.topic_ids import TopicIds
from spark.landing.changes import BOUNDS, MARK_COLUMNS, Landing


def sent(spark: SparkSession, lake: Lake, name: Name, floor: list[int], begin: str) -> DataFrame:
    """Columns of `_changes`, from before `floor` (a `_seq`) on. `begin`: what that is, in words."""
    pipeline, told = lake.pipeline, ".".join(name)
    own = names.events_topics(pipeline, *name)
    read = Landing(spark, pipeline, lake).read()
    # One that no template gives was a table's before an edit of which nobody took note; its records say whose.
    ends = {at: end for at, end in read.items() if at[0] in own or names.is_unknown_topic(pipeline, at[0])}
    if not ends:
        raise TableError(
            f"compaction has read nothing of the topic {' or '.join(own)}: take the rows from changes or mysql instead"
        )
    broker = Broker(pipeline)
    _refuse_gone(broker, ends, told)
    _refuse_made_again(lake, broker, ends, told)
    _refuse_compacted(broker, ends, told)
    begins = broker.begins(ends)
    options = {
        **BOUNDS,
        **spark_options(pipeline),
        "kafka.bootstrap.servers": pipeline.kafka.bootstrap,
        "kafka.isolation.level": "read_committed",
        "assign": json.dumps(_numbers(ends)),
        "startingOffsets": in_json(begins),
        "endingOffsets": in_json({at: max(end, begins[at]) for at, end in ends.items()}),
        "failOnDataLoss": "true",
    }
    records = spark.read.format("kafka").options(**options).load()
    changes = shaped(records, pipeline.name, strict=False).where((fn.col("tbl") == told) & (fn.col("db") == name[0]))
    _refuse_purged(changes, begins, floor, told, begin)
    return Erasures(lake).without(first_sent(once(changes, spark.createDataFrame([], MARK_COLUMNS)), None))


def _numbers(ends: Ends) -> dict[str, list[int]]:
    numbers: dict[str, list[int]] = {}
    for topic, number in sorted(ends):
        numbers.setdefault(topic, []).append(number)
    return numbers


def _refuse_gone(broker: Broker, ends: Ends, told: str) -> None:
    for topic, numbers in _numbers(ends).items():
        if not {*numbers} <= {*broker.bounds(topic)}:
            raise TableError(
                f"{told}: compaction has read the topic {topic}, and Kafka does not have all of it any more. Nothing "
                "was written: take the rows from changes or mysql instead"
            )


def _refuse_made_again(lake: Lake, broker: Broker, ends: Ends, told: str) -> None:
    ids = TopicIds(lake, lake.checkpoint("changes"))
    if why := ids.made_again(broker.topic_ids({topic for topic, _ in ends}), ends):
        raise TableError(
            f"{told}: {why}; what it has now are other records. Nothing was written: take the rows from changes or "
            "mysql instead"
        )


def _refuse_compacted(broker: Broker, ends: Ends, told: str) -> None:
    """The first offset does not tell it: a topic that compacts loses deletes, and keeps it. The streamer refuses such a
    topic, so that somebody set it so since."""
    settings = broker.settings({topic for topic, _ in ends})
    for topic in sorted({topic for topic, _ in ends}):
        policy = settings.get(topic, {}).get("cleanup.policy")
        if policy is None:
            raise TableError(
                f"{told}: Kafka does not tell the cleanup.policy of the topic {topic}, by which deletes may be gone "
                "from it. Nothing was written: let Headrace's user ask it (DescribeConfigs on the topic), or take the "
                "rows from changes or mysql instead"
            )
        if policy != "delete":
            raise TableError(
                f"{told}: the topic {topic} has cleanup.policy {policy}, and not delete: changes between the first and "
                "the last of a key may be gone, and rows that were deleted would come back. Nothing was written: take "
                "the rows from changes or mysql instead"
            )


def _refuse_purged(changes: DataFrame, begins: Ends, floor: list[int], told: str, begin: str) -> None:
    """In a partition `_seq` only grows: where its first record is before the floor, so are all that are gone."""
    purged = {at for at, first in begins.items() if first}
    if not purged:
        return
    first = changes.groupBy("topic", "partition").agg(fn.min("_seq").alias("seq")).collect()
    known = {(row["topic"], row["partition"]) for row in first if list(row["seq"]) <= floor}
    if lost := sorted(purged - known):
        topic = lost[0][0]
        numbers = ", ".join(str(number) for name, number in lost if name == topic)
        raise TableError(
            f"{told}: Kafka has deleted records of {topic} (partition {numbers}) that may be younger "
            f"than {begin}, so that the rows cannot be made from it. Nothing was written: take them from "
            "changes or mysql instead, and raise kafka.retention_hours for the next time"
        )
