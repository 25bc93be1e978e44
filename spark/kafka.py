"""What the jobs' drivers read from Kafka themselves: the commit log, the schemas, the topics and their ends.

The events go through Spark. These topics are a few records, for which a consumer is quicker than a query.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Mapping
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient

from contract import names
from contract.checkpoint import Checkpoint
from contract.ddl_record import DdlRecord
from contract.pipeline import Pipeline
from contract.schema import TableSchema
from spark.errors import LakeError

SECONDS = 15.0
COMMIT_SECONDS = 5.0
COMMIT_POLL_SECONDS = 0.1
NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"  # sixteen zeros, as Kafka prints an id
Ends = dict[tuple[str, int], int]  # (topic, partition) -> the offset behind the last record


class Broker:
    """A short connection to the pipeline's broker. Raises LakeError where it does not answer."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline

    def checkpoint(self) -> Checkpoint | None:
        """The greatest of the commit log; None where the streamer has not released anything yet."""
        records = self._records(names.commit_log_topic(self.pipeline))
        own = [value for key, value in records if value is not None and key.decode() == self.pipeline.name]
        return Checkpoint.greatest(map(Checkpoint.read, own))

    def schemas(self) -> list[TableSchema]:
        """As the lake is to have them."""
        records = self._records(names.schemas_topic(self.pipeline))
        found = [TableSchema.model_validate_json(value) for _, value in records if value is not None]
        return [self.pipeline.lake.lands(schema) for schema in found]

    def ddl(self, read: Mapping[int, int]) -> tuple[list[DdlRecord], dict[int, int]]:
        """The DDL topic's records behind the offsets `read` of its partitions, and the offsets behind the last ones."""
        found, ends, topic = [], dict(read), names.ddl_topic(self.pipeline)
        with _Reading(self.pipeline) as consumer:
            for number in _partitions(consumer, topic):
                low, high = consumer.get_watermark_offsets(TopicPartition(topic, number), SECONDS)
                begin = read.get(number, 0) if read.get(number, 0) <= high else low  # a topic that was made again
                found += [value for _, value in _partition(consumer, topic, number, begin) if value is not None]
                ends[number] = high
        return [DdlRecord.model_validate_json(value) for value in found], ends

    def topics(self, read: Collection[str]) -> dict[str, list[int]]:
        """The broker's event topics of this pipeline, each with its partitions; and of those that were `read` before
        the ones that tables.include no longer has."""
        with _Reading(self.pipeline) as consumer:
            found = consumer.list_topics(timeout=SECONDS).topics
        wanted = {*names.event_topics(self.pipeline, found), *(topic for topic in read if topic in found)}
        return {topic: sorted(found[topic].partitions) for topic in sorted(wanted)}

    def has(self, topic: str) -> bool:
        with _Reading(self.pipeline) as consumer:
            return topic in consumer.list_topics(timeout=SECONDS).topics  # of one alone, the broker might make it

    def topic_ids(self, topics: Collection[str]) -> dict[str, str]:
        """The topics' ids; a broker that knows no ids gives none."""
        if not topics:
            return {}
        with _Reading(self.pipeline):
            admin = AdminClient(connection(self.pipeline), logger=_Silent())
            asked = admin.describe_topics(TopicCollection(list(topics)), request_timeout=SECONDS)
            found = {topic: str(told.result().topic_id) for topic, told in asked.items()}
        return {topic: id for topic, id in found.items() if id != NO_ID}

    def ends(self, topics: Mapping[str, Collection[int]]) -> Ends:
        """The end of every partition of the topics, of what is committed; 0 where nothing was ever written.

        What the checkpoint read before holds stands before them: Kafka commits a transaction partition by partition, so
        that what was written is waited for. What is still not committed then is of a later transaction, which a
        producer cannot begin before the one before is committed everywhere.
        """
        at = [TopicPartition(name, number) for name, numbers in topics.items() for number in numbers]
        with _Reading(self.pipeline, "read_uncommitted") as consumer:
            written = _ends(consumer, at)
        until = time.monotonic() + COMMIT_SECONDS
        with _Reading(self.pipeline) as consumer:
            ends = _ends(consumer, at)
            while any(ends[one] < written[one] for one in ends) and time.monotonic() < until:
                time.sleep(COMMIT_POLL_SECONDS)
                ends = _ends(consumer, at)
        return ends

    def time_of(self, topic: str, partition: int, offset: int) -> int | None:
        """When the record at the offset was written, Unix ms; that of the next one where it is gone, None where all
        up to it are."""
        at = TopicPartition(topic, partition, offset)
        with _Reading(self.pipeline) as consumer:
            low, high = consumer.get_watermark_offsets(at, SECONDS)
            if not low <= offset < high:
                return None
            consumer.assign([at])
            while (message := consumer.poll(SECONDS)) is not None:
                if (error := message.error()) is None:
                    return int(message.timestamp()[1])
                if error.code() == KafkaError._PARTITION_EOF:
                    return None
                raise KafkaException(error)
            raise KafkaException(KafkaError(KafkaError._TIMED_OUT))

    def begins(self, partitions: Collection[tuple[str, int]]) -> Ends:
        """The first offset that each of these partitions still has."""
        with _Reading(self.pipeline) as consumer:
            at = [TopicPartition(topic, number) for topic, number in partitions]
            return {(p.topic, p.partition): consumer.get_watermark_offsets(p, SECONDS)[0] for p in at}

    def bounds(self, topic: str) -> dict[int, tuple[int, int]]:
        """Where each of the topic's partitions begins and ends; of none where the topic is not there."""
        with _Reading(self.pipeline) as consumer:
            numbers = _partitions(consumer, topic)
            return {n: consumer.get_watermark_offsets(TopicPartition(topic, n), SECONDS) for n in numbers}

    def first(self, topic: str, partition: int, begin: int) -> list[int] | None:
        """The `_seq` of the first change of this pipeline in the partition; None where it has none."""
        with _Reading(self.pipeline) as consumer:
            records = _partition(consumer, topic, partition, begin)
            return next((seq for _, value in records if (seq := self._sequence(value))), None)

    def _sequence(self, value: bytes | None) -> list[int] | None:
        """None of what is no change of this pipeline: another's, a tombstone, something else."""
        try:
            source = json.loads(value or b"{}")["source"]
            return [*map(int, source["seq"])] if source["name"] == self.pipeline.name else None
        except (ValueError, TypeError, LookupError):
            return None

    def _records(self, topic: str) -> Iterator[tuple[bytes, bytes | None]]:
        with _Reading(self.pipeline) as consumer:
            for number in _partitions(consumer, topic):
                yield from _partition(consumer, topic, number)


def _ends(consumer: Consumer, at: list[TopicPartition]) -> Ends:
    return {(p.topic, p.partition): consumer.get_watermark_offsets(p, SECONDS)[1] for p in at}


def _partitions(consumer: Consumer, topic: str) -> list[int]:
    """None of a topic that is not there."""
    about = consumer.list_topics(topic, timeout=SECONDS).topics[topic]
    if about.error is None:
        return sorted(about.partitions)
    if about.error.code() == KafkaError.UNKNOWN_TOPIC_OR_PART:
        return []
    raise KafkaException(about.error)


def _partition(consumer: Consumer, topic: str, number: int, begin: int = 0) -> Iterator[tuple[bytes, bytes | None]]:
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
        yield message.key() or b"", message.value()
        # Not the end of the partition alone: one that is written to all the time is never seen to end.
        if (message.offset() or 0) >= high - 1:
            return


def connection(pipeline: Pipeline) -> dict[str, Any]:
    """The client's settings with which the broker is reached."""
    return {**pipeline.kafka.properties, "bootstrap.servers": pipeline.kafka.bootstrap}


class _Reading:
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
            logger=_Silent(),
        )

    def __enter__(self) -> Consumer:
        return self.consumer

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        self.consumer.close()
        if isinstance(error, KafkaException):
            reason = error.args[0].str() or error.args[0].name()
            raise LakeError(
                f"Kafka at {self.address} cannot be read: {reason}. Start it, or mend kafka.bootstrap; "
                "the next run goes on where this one stopped"
            ) from None


class _Silent:
    """librdkafka's own log lines repeat every second what the one error says."""

    def log(self, *args: object, **kwargs: object) -> None:
        return None

    debug = info = warning = error = critical = log
