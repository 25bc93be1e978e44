"""What a streamer sent behind its last checkpoint, before it was killed: read back from the event topics.

On the same server that is sent again and no matter. Another server must have it, or the topics hold changes that it
never saw.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition

from contract import names
from contract.checkpoint import Checkpoint
from contract.gtid import GtidSet
from contract.pipeline import Pipeline
from streamer.kafka import broker
from streamer.kafka.compacted import reader, records
from streamer.kafka.topics import TIMEOUT_SECONDS

SLACK_MS = 5_000  # by which the clocks of the source and of this machine may differ


def behind(pipeline: Pipeline, checkpoint: Checkpoint) -> GtidSet:
    """The transactions of which something is in the event topics and that the checkpoint does not hold. Raises
    BrokerUnreachableError, BrokerRefusedError."""
    seen, sent = (pipeline.source.gtids(text) for text in (checkpoint.gtid_set, ""))
    consumer = reader(pipeline.kafka)
    try:
        for partition in _since(consumer, pipeline, checkpoint.ts_ms - SLACK_MS):
            _, high = consumer.get_watermark_offsets(partition, timeout=TIMEOUT_SECONDS)
            for _, value in records(consumer, partition, high):
                gtid = _gtid(value)
                if gtid and not seen.contains(gtid) and not sent.contains(gtid):
                    sent.add(gtid)
    except KafkaException as error:
        raise broker.typed(error, "reading the event topics of", pipeline.kafka) from None
    finally:
        consumer.close()
    return sent


def _since(consumer: Consumer, pipeline: Pipeline, since_ms: int) -> Iterator[TopicPartition]:
    """Each partition of the event topics, with the offset of its first record that was sent then or later."""
    found: Any = consumer.list_topics(timeout=TIMEOUT_SECONDS).topics
    asked = [
        TopicPartition(topic, number, max(0, since_ms))
        for topic in names.event_topics(pipeline, found)
        for number in found[topic].partitions
    ]
    # Beyond the last record's time the answer is the end, as a number below 0.
    return (partition for partition in consumer.offsets_for_times(asked, TIMEOUT_SECONDS) if partition.offset >= 0)


def _gtid(value: bytes | None) -> str:
    """A tombstone has none."""
    return str((json.loads(value).get("source") or {}).get("gtid") or "") if value else ""
