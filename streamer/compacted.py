"""Reading a compacted topic of one partition, from its start or its end to where it ends now."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from confluent_kafka import OFFSET_INVALID, Consumer, KafkaError, KafkaException, TopicPartition

from contract.pipeline import Kafka
from streamer import broker

POLL_SECONDS = 1.0
PATIENCE_SECONDS = 30.0
Record = tuple[bytes | None, bytes | None]


def read(kafka: Kafka, topic: str, last: int | None = None, stopping: Callable[[], bool] | None = None) -> list[Record]:
    """Keys and values of all records, or of those in the `last` offsets, in order; empty when `stopping` says so.

    Raises BrokerUnreachableError, BrokerRefusedError (a missing topic is one).
    """
    consumer = Consumer(
        broker.settings(
            kafka,
            **{
                "group.id": "headrace-reader",  # never committed: only a name that the client insists on
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed",
                "auto.offset.reset": "error",
            },
        )
    )
    try:
        return list(_records(consumer, topic, last, stopping or (lambda: False)))
    except KafkaException as error:
        raise broker.typed(error, f"reading topic {topic} of", kafka) from None
    finally:
        consumer.close()


def _records(consumer: Consumer, topic: str, last: int | None, stopping: Callable[[], bool]) -> Iterator[Record]:
    low, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=10)
    if OFFSET_INVALID in (low, high) or low == high:
        return
    start = low if last is None else max(low, high - last)
    consumer.assign([TopicPartition(topic, 0, start)])
    silent = 0.0
    while not stopping():
        message = consumer.poll(POLL_SECONDS)
        if message is None:
            silent += POLL_SECONDS
            if silent >= PATIENCE_SECONDS:
                raise KafkaException(KafkaError(KafkaError._TIMED_OUT, f"nothing came for {silent:g} s"))
            continue
        silent = 0.0
        if (error := message.error()) is None:
            yield message.key(), message.value()
        elif error.code() == KafkaError._PARTITION_EOF:
            return
        elif error.code() not in broker.AWAY:
            raise KafkaException(error)
