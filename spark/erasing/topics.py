"""What Kafka has of some keys, and for how long.

`_changes` does not tell it all: changes go from there by their age while Kafka still has the records, and what a
streamer sent again stands behind the record that was landed. So each topic of the table may have records of up to now.

From a topic that compacts a tombstone takes them, outside of any transaction, and the lake passes it by: into the very
partition of the key's records, or, where none of them was found, into each. From others nothing is taken: the broker
removes their records by age, segment by segment, so that there is a time from which it may, and one at which it has.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from confluent_kafka import KafkaException, Producer
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as fn

from contract import names
from contract.pipeline import Pipeline
from spark.errors import LakeError, PassingError
from spark.failpoints import reached
from spark.kafka.broker import Broker
from spark.kafka.producing import produce
from spark.kafka.reading import SECONDS, connection
from spark.lake.erasures import Topic

CHECKED_MS = 300_000  # between two looks of the broker for what is too old, by default
UNKNOWN = "unknown"
GRAVE = ("topic", "partition", "key")


class Topics:
    """Of one pipeline. Raises LakeError where Kafka does not answer."""

    def __init__(self, pipeline: Pipeline, broker: Broker) -> None:
        self.pipeline, self.broker = pipeline, broker

    def of(self, topics: Collection[str], events: DataFrame | None, now_ms: int) -> list[Topic]:
        """Those with records, with the time `now_ms` as their last one's. `topics`: of a table; `events`: the changes
        of the keys that were found (`topic`, `partition`, `offset`), which may be of others."""
        last = _last(events) if events is not None else []
        there = self._there({*topics, *(row["topic"] for row in last)})
        settings, came = self.broker.settings(there), dict[str, int]()
        for row in last:
            topic = row["topic"]
            at = self.broker.time_of(topic, row["partition"], row["at"]) if topic in there else None
            came[topic] = max(came.get(topic, 0), at or 0)
        found = [lasting(topic, settings.get(topic, {}), now_ms, came.get(topic)) for topic in there]
        return [one.model_copy(update={"tombstone": self._buries(one)}) for one in found]

    def others(self, chosen: Collection[str], now_ms: int) -> list[Topic]:
        """Of the topics beside the tables' own that may have rows, those with records. `chosen`: by transforms."""
        own = names.dead_letter_topic(self.pipeline), names.snapshot_topic(self.pipeline)
        there = self._there({*own, *chosen})
        settings = self.broker.settings(there)
        return [lasting(topic, settings.get(topic, {}), now_ms) for topic in there]

    def graves(self, buried: Iterable[str], keys: DataFrame, events: DataFrame | None) -> DataFrame:
        """Where tombstones are to go, for these topics: `topic`, `partition`, `key`. `keys`: texts as records have
        them, in the column `key`."""
        topics = sorted({*buried})
        each = [(topic, number) for topic in topics if self._alone(topic) for number in self.broker.bounds(topic)]
        everywhere = keys.crossJoin(keys.sparkSession.createDataFrame(each, "topic string, partition int"))
        if events is None:
            return everywhere.select(*GRAVE)
        known = events.where(fn.col("topic").isin(topics)).select(*GRAVE).distinct()
        return known.unionByName(everywhere.join(known, ["topic", "key"], "left_anti").select(*GRAVE))

    def bury(self, graves: DataFrame) -> None:
        """Sends a tombstone into each."""
        rows = graves.collect()
        wanted = ", ".join(sorted({row["topic"] for row in rows}))
        settings = {**connection(self.pipeline), "enable.idempotence": True, "message.timeout.ms": int(SECONDS * 1000)}
        producer, failures = Producer(settings), list[Any]()

        def told(error: Any, _: Any) -> None:
            if error:
                failures.append(error)

        try:
            for row in rows:
                produce(producer, row["topic"], None, row["key"], told, row["partition"])
            left = producer.flush(SECONDS)
        except KafkaException as error:
            raise LakeError(f"{wanted} does not take the tombstones: {error}. Run this again") from None
        if left or failures:
            raise PassingError(f"{wanted} did not take {left or len(failures)} tombstone(s): run this again")
        reached("tombstones sent")

    def _there(self, topics: Iterable[str]) -> list[str]:
        """Those with records, sorted."""
        held = {topic: self.broker.bounds(topic).values() for topic in topics}
        return sorted(topic for topic, bounds in held.items() if any(low < high for low, high in bounds))

    def _buries(self, topic: Topic) -> bool:
        return topic.compacts and (topic.found or self._alone(topic.name))

    def _alone(self, topic: str) -> bool:
        """Whether it is one table's: in others a row of another table may have the same key, which a record's key does
        not tell apart."""
        return len(names.tables_of(self.pipeline, topic)) == 1


def _last(events: DataFrame) -> list[Row]:
    """Of each partition the greatest offset of the changes, `at`."""
    return events.groupBy("topic", "partition").agg(fn.max("offset").alias("at")).collect()


def lasting(topic: str, settings: dict[str, str], now_ms: int, came_ms: int | None = None) -> Topic:
    """`settings`: the topic's, as the broker tells them; `came_ms`: when the last record came that is known to be of
    the keys, 0 where Kafka has it no more, None where there is none."""
    policy, came = settings.get("cleanup.policy", UNKNOWN), came_ms or 0
    last_ms = max(now_ms, came)  # a producer's clock may be ahead
    made = Topic(name=topic, policy=policy, last_ms=last_ms, found=came_ms is not None)
    kept, segment = int(settings.get("retention.ms", -1)), int(settings.get("segment.ms", -1))
    if "delete" not in policy.split(",") or kept < 0:
        return made
    # The record's segment goes when the last of its records is old enough; it takes records for `segment` at the most.
    latest = last_ms + kept + segment + CHECKED_MS if segment >= 0 else None
    return made.model_copy(update={"earliest_ms": came + kept if came else None, "latest_ms": latest})
