"""Reading a compacted topic of one partition, from its start or its end to where it ends now."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, TopicPartition

from contract.pipeline import Kafka
from streamer.kafka import broker

POLL_SECONDS = 1.0
END_MS = 10  # behind a transaction's marker the broker would else wait half a second for more
PATIENCE_SECONDS = 30.0
LEADER_SECONDS = 5.0
LEADER_POLL_SECONDS = 0.1
NO_LEADER_YET = frozenset(
    {
        KafkaError.NOT_LEADER_FOR_PARTITION,
        KafkaError.LEADER_NOT_AVAILABLE,
        KafkaError.UNKNOWN_TOPIC_OR_PART,
        KafkaError._UNKNOWN_PARTITION,
        KafkaError._UNKNOWN_TOPIC,
    }
)
Record = tuple[bytes | None, bytes | None]


def read(kafka: Kafka, topic: str, last: int | None = None, stopping: Callable[[], bool] | None = None) -> list[Record]:
    """Keys and values of all records, or of those in the `last` offsets, in order; empty when `stopping` says so.

    Raises BrokerUnreachableError, BrokerRefusedError (a missing topic is one).
    """
    consumer = reader(kafka, END_MS)
    try:
        return list(_records(consumer, topic, last, stopping or (lambda: False)))
    except KafkaException as error:
        raise broker.typed(error, f"reading topic {topic} of", kafka) from None
    finally:
        consumer.close()


def reader(kafka: Kafka, wait_ms: int = 500) -> Consumer:
    """`wait_ms`: for which the broker may keep an answer back until there is something to read."""
    return broker.made(
        Consumer,
        broker.settings(
            kafka,
            **{
                "group.id": "headrace-reader",  # never committed: only a name that the client insists on
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": wait_ms,
                "isolation.level": "read_committed",
                "auto.offset.reset": "error",
            },
        ),
    )


def _records(consumer: Consumer, topic: str, last: int | None, stopping: Callable[[], bool]) -> Iterator[Record]:
    low, high = _ends(consumer, TopicPartition(topic, 0))
    if OFFSET_INVALID in (low, high) or low == high:
        return
    start = low if last is None else max(low, high - last)
    yield from records(consumer, TopicPartition(topic, 0, start), high, stopping)


def records(
    consumer: Consumer, start: TopicPartition, high: int, stopping: Callable[[], bool] = lambda: False
) -> Iterator[Record]:
    """Those of one partition from its offset up to `high`. Raises KafkaException."""
    consumer.assign([start])
    came = time.monotonic()
    while not stopping():
        message = consumer.poll(POLL_SECONDS)
        error = message.error() if message is not None else None
        if message is None or (error is not None and error.code() in broker.AWAY):
            if (silent := time.monotonic() - came) >= PATIENCE_SECONDS:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"nothing came for {silent:.0f} s"))
        elif error is None:
            # Not the end of the partition alone: one that is written to all the time is never seen to end.
            if (offset := message.offset() or 0) < high:
                yield message.key(), message.value()
            came = time.monotonic()
            if offset >= high - 1:
                return
        elif error.code() == KafkaError._PARTITION_EOF:
            return
        else:
            raise KafkaException(error)


def _ends(consumer: Consumer, partition: TopicPartition) -> tuple[int, int]:
    """First and next offset. The broker of a topic made a moment ago may not know yet that it leads it."""
    until = time.monotonic() + LEADER_SECONDS
    while True:
        try:
            low, high = consumer.get_watermark_offsets(partition, timeout=10)
            return low, high
        except KafkaException as error:
            if error.args[0].code() not in NO_LEADER_YET or time.monotonic() >= until:
                raise
            time.sleep(LEADER_POLL_SECONDS)
