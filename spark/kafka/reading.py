"""A consumer of the pipeline's broker that commits nothing, and what it reads of a partition."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from contract.pipeline import Pipeline
from spark.errors import LakeError, PassingError

SECONDS = 15.0
# Codes of a broker that does not answer, or is about to: it may by the next run.
AWAY = frozenset({
    KafkaError._TRANSPORT, KafkaError._ALL_BROKERS_DOWN, KafkaError._TIMED_OUT, KafkaError._RESOLVE,
    KafkaError.REQUEST_TIMED_OUT, KafkaError.LEADER_NOT_AVAILABLE, KafkaError.NOT_LEADER_FOR_PARTITION,
    KafkaError.BROKER_NOT_AVAILABLE, KafkaError.NETWORK_EXCEPTION, KafkaError.COORDINATOR_NOT_AVAILABLE,
    KafkaError.COORDINATOR_LOAD_IN_PROGRESS, KafkaError.REPLICA_NOT_AVAILABLE, KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH, KafkaError.OFFSET_NOT_AVAILABLE, KafkaError._NOENT,
})  # fmt: skip


class Record(NamedTuple):
    """`key`: empty of one without."""

    key: bytes
    value: bytes | None
    topic: str
    partition: int
    offset: int


def numbers_of(consumer: Consumer, topic: str) -> list[int]:
    """None of a topic that is not there."""
    about = consumer.list_topics(topic, timeout=SECONDS).topics[topic]
    if about.error is None:
        return sorted(about.partitions)
    if about.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
        return []
    raise KafkaException(about.error)


def records_of(consumer: Consumer, topic: str, number: int, begin: int = 0) -> Iterator[Record]:
    """From the offset `begin` on, where there still is one."""
    low, high = consumer.get_watermark_offsets(TopicPartition(topic, number), SECONDS)
    low = max(low, begin)
    if low >= high:
        return
    consumer.assign([TopicPartition(topic, number, low)])
    while True:
        message = consumer.poll(SECONDS)
        if message is None:
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))
        error = message.error()
        if error is not None and error.code() == KafkaError._PARTITION_EOF:
            return
        if error is not None:
            raise KafkaException(error)
        yield Record(message.key() or b"", message.value(), topic, number, message.offset() or 0)
        # Not the end of the partition alone: one that is written to all the time is never seen to end.
        if (message.offset() or 0) >= high - 1:
            return


def connection(pipeline: Pipeline) -> dict[str, Any]:
    """The client's settings with which the broker is reached."""
    return {**pipeline.kafka.properties, "bootstrap.servers": pipeline.kafka.bootstrap}


class Reading:
    """A consumer that commits nothing, closed at the end; Kafka's errors become LakeErrors."""

    def __init__(self, pipeline: Pipeline, isolation: str = "read_committed") -> None:
        self.address = pipeline.kafka.bootstrap
        self.consumer = Consumer(
            {
                **connection(pipeline),
                "group.id": f"headrace-{pipeline.name}-driver",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                # At the end, behind a transaction's marker, the broker would wait half a second for more.
                "fetch.wait.max.ms": 10,
                "auto.offset.reset": "earliest",
                "isolation.level": isolation,
            },
            logger=Silent(),
        )

    def __enter__(self) -> Consumer:
        return self.consumer

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.consumer.close()
        if isinstance(error, KafkaException):
            reason = error.args[0].str() or error.args[0].name()
            kind = PassingError if error.args[0].code() in AWAY else LakeError
            raise kind(
                f"Kafka at {self.address} cannot be read: {reason}. Start it, or mend kafka.bootstrap; "
                "the next run goes on where this one stopped"
            ) from None


class Silent:
    """librdkafka's own log lines repeat every second what the one error says."""

    def log(self, *args: object, **kwargs: object) -> None:
        return None

    debug = info = warning = error = critical = log
