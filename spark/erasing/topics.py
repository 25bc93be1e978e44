"""What Kafka has of some keys, and for how long.

From a topic that compacts a tombstone takes them: it goes to the very partition of the key's records, outside of any
transaction, and the lake passes it by. From others nothing is taken: the broker removes their records by age, segment
by segment, so that there is a time from which it may, and one at which it has.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from contract import names
from contract.pipeline import Pipeline
from spark.errors import LakeError
from spark.failpoints import reached
from spark.kafka.broker import Broker
from spark.kafka.reading import SECONDS, connection
from spark.lake.erasures import Topic, together

CHECKED_MS = 300_000  # between two looks of the broker for what is too old, by default
UNKNOWN = "unknown"


class Topics:
    """Of one pipeline. Raises LakeError where Kafka does not answer."""

    def __init__(self, pipeline: Pipeline, broker: Broker) -> None:
        self.pipeline, self.broker = pipeline, broker

    def of(self, events: DataFrame) -> list[Topic]:
        """Of the changes (`topic`, `partition`, `offset`) of some keys."""
        last = events.groupBy("topic", "partition").agg(fn.max("offset").alias("offset")).collect()
        settings = self._settings(row["topic"] for row in last)
        found = []
        for row in last:
            topic = row["topic"]
            at = self.broker.time_of(topic, row["partition"], row["offset"]) if topic in settings else None
            found.append(lasting(topic, settings.get(topic, {}), at))
        return together(found)

    def others(self, now_ms: int) -> list[Topic]:
        """The topics beside the tables' own that may have rows, with records of up to now."""
        told = [names.dead_letter_topic(self.pipeline), names.snapshot_topic(self.pipeline)]
        there = [topic for topic in told if self.broker.has(topic)]
        settings = self._settings(there)
        return [lasting(topic, settings.get(topic, {}), now_ms) for topic in there]

    def bury(self, events: DataFrame, compacted: Iterable[str]) -> None:
        """Sends a tombstone for each key of the changes into each of these topics."""
        wanted = sorted(set(compacted))
        rows = events.where(fn.col("topic").isin(wanted)).select("topic", "partition", "key").distinct().collect()
        settings = {**connection(self.pipeline), "enable.idempotence": True, "message.timeout.ms": int(SECONDS * 1000)}
        producer, failures = Producer(settings), list[Any]()
        try:
            for row in rows:
                producer.produce(
                    row["topic"], None, row["key"], row["partition"],
                    on_delivery=lambda error, _: failures.append(error) if error else None,
                )  # fmt: skip
                producer.poll(0)
            left = producer.flush(SECONDS)
        except (KafkaException, BufferError) as error:
            raise LakeError(f"{', '.join(wanted)} does not take the tombstones: {error}. Run this again") from None
        if left or failures:
            raise LakeError(f"{', '.join(wanted)} did not take {left or len(failures)} tombstone(s): run this again")
        reached("tombstones sent")

    def _settings(self, topics: Iterable[str]) -> dict[str, dict[str, str]]:
        asked = [ConfigResource(ResourceType.TOPIC, topic) for topic in sorted(set(topics))]
        if not asked:
            return {}
        client = AdminClient(connection(self.pipeline))
        found = {}
        for resource, answer in client.describe_configs(asked, request_timeout=SECONDS).items():
            try:
                found[resource.name] = {name: entry.value for name, entry in answer.result().items()}
            except KafkaException:  # it is gone, or the user may not ask
                continue
        return found


def lasting(topic: str, settings: dict[str, str], last_ms: int | None) -> Topic:
    """`settings`: the topic's, as the broker tells them; `last_ms`: when the last record came, None where there is
    none."""
    policy = settings.get("cleanup.policy", UNKNOWN)
    made = Topic(name=topic, policy=policy, last_ms=last_ms)
    kept, segment = int(settings.get("retention.ms", -1)), int(settings.get("segment.ms", -1))
    if last_ms is None or "delete" not in policy.split(",") or kept < 0:
        return made
    # The record's segment goes when the last of its records is old enough; it takes records for `segment` at the most.
    latest = last_ms + kept + segment + CHECKED_MS if segment >= 0 else None
    return made.model_copy(update={"earliest_ms": last_ms + kept, "latest_ms": latest})
