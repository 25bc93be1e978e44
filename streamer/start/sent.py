"""What a streamer sent behind its last checkpoint, before it was killed: read back from the event topics.

On the same server that is sent again and no matter. Another server must have it, or the topics hold changes that it
never saw. It stands among the last records of each partition: no run sends more than its waiting queue holds before
something of it is released, and of a larger transaction the last records tell.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import structlog
from confluent_kafka import Consumer, KafkaException, TopicPartition

from contract import names
from contract.checkpoint import Checkpoint
from contract.gtid import GtidSet
from contract.gtid_places import name
from contract.pipeline import Pipeline
from streamer.kafka import broker
from streamer.kafka.compacted import END_MS, reader, records
from streamer.kafka.topics import TIMEOUT_SECONDS

log = structlog.get_logger("streamer")
SLACK_MS = 5_000  # by which the clocks of the source and of this machine may differ
WRITTEN_MS = 60_000  # how long before the checkpoint was written a record behind it may have been sent
RUNS = 4  # that ended one after the other without getting further than the first of them
MARGIN = 10_000  # offsets beyond the waiting queues: the batches that entered them last, the marks of transactions
TELL_SECONDS = 10.0


def behind(pipeline: Pipeline, checkpoint: Checkpoint, stopping: Callable[[], bool] = lambda: False) -> GtidSet:
    """The transactions of which something is in the event topics and that the checkpoint does not hold, as far as was
    read when `stopping` said so. Raises BrokerUnreachableError, BrokerRefusedError."""
    consumer = reader(pipeline.kafka, END_MS)
    sent = _Sent(pipeline, checkpoint, stopping)
    try:
        since = min(checkpoint.ts_ms, checkpoint.written_at - WRITTEN_MS) - SLACK_MS  # the source's clock may be ahead
        for partition in _since(consumer, pipeline, checkpoint.topics, since):
            _, high = consumer.get_watermark_offsets(partition, timeout=TIMEOUT_SECONDS)
            if stopping():
                break
            sent.read(consumer, partition, high)
    except KafkaException as error:
        raise broker.typed(error, "reading the event topics of", pipeline.kafka) from None
    finally:
        consumer.close()
    return sent.gtids


class _Sent:
    """`gtids`: those found so far."""

    def __init__(self, pipeline: Pipeline, checkpoint: Checkpoint, stopping: Callable[[], bool]) -> None:
        self._name = pipeline.name
        self._parse = parse = pipeline.source.gtids
        self.gtids = parse(checkpoint.behind).copy()
        self.gtids.intervals.clear()
        self._by_place = checkpoint.by_place
        self._released = parse(checkpoint.behind)
        if checkpoint.seen_set:  # read again for an open XA transaction, but sent, and to be had by another server
            seen = parse(checkpoint.seen_set)
            self.gtids = seen.subtract(self._released)
            self._released = seen
        self._limit = RUNS * pipeline.streamer.ledger.max_events + MARGIN
        self._stopping = stopping
        self._records = 0
        self._told = time.monotonic()

    def read(self, consumer: Consumer, start: TopicPartition, high: int) -> None:
        """`start`: behind which all that is asked for stands. Raises KafkaException."""
        first = max(start.offset, high - self._limit)
        for _, value in records(consumer, TopicPartition(start.topic, start.partition, first), high, self._stopping):
            gtid = self._gtid(value)
            if gtid and not self._released.contains(gtid) and not self.gtids.contains(gtid):
                self.gtids.add(gtid)
            self._tell(start.topic)

    def _gtid(self, value: bytes | None) -> str:
        """Empty of a tombstone, and of others' records in a topic that both write into."""
        try:
            told = json.loads(value or b"{}")
            source = told.get("payload", told)["source"]  # behind its schema in Debezium's form
            if self._by_place:
                return name(source["file"], int(source["pos"])) if source.get("name", self._name) == self._name else ""
            if not source["gtid"] or source.get("name", self._name) != self._name:
                return ""
            self._parse(source["gtid"])
            return str(source["gtid"])
        except (ValueError, KeyError, TypeError, AttributeError):
            return ""

    def _tell(self, topic: str) -> None:
        self._records += 1
        if time.monotonic() - self._told >= TELL_SECONDS:
            self._told = time.monotonic()
            log.info("reading what was sent behind the checkpoint", records=self._records, topic=topic)


def _since(consumer: Consumer, pipeline: Pipeline, more: tuple[str, ...], since_ms: int) -> Iterator[TopicPartition]:
    """Each partition of the event topics and of `more`, with the offset of its first record that was sent then or
    later."""
    found: Any = consumer.list_topics(timeout=TIMEOUT_SECONDS).topics
    asked = [
        TopicPartition(topic, number, max(0, since_ms))
        for topic in sorted({*names.event_topics(pipeline, found), *found.keys() & set(more)})
        for number in found[topic].partitions
    ]
    if not asked:  # librdkafka takes a question about no partition at all for a mistake
        return iter(())
    # Beyond the last record's time the answer is the end, as a number below 0.
    return (partition for partition in consumer.offsets_for_times(asked, TIMEOUT_SECONDS) if partition.offset >= 0)
