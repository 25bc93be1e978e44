"""What the jobs' drivers read from Kafka themselves: the commit log, the schemas, the topics and their ends.

The events go through Spark. These topics are a few records, for which a consumer is quicker than a query.
"""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import ConfigResource, ResourceType

from contract import names, steps
from contract.checkpoint import Checkpoint
from contract.ddl_record import DdlRecord
from contract.pipeline import Pipeline
from contract.schema import TableSchema
from spark.errors import LakeError, PassingError
from spark.kafka.offsets import Ends, administrator, begins, committed_ends, written_ends
from spark.kafka.own_records import COMMIT_LOG, DDL, SCHEMAS, said
from spark.kafka.reading import SECONDS, Reading, Record, numbers_of, records_of

COMMIT_SECONDS = 5.0
COMMIT_POLL_SECONDS = 0.1
BACK = (32, 256)  # records from the end of a partition on, in which its last change is looked for
NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"  # sixteen zeros, as Kafka prints an id


class Broker:
    """A short connection to the pipeline's broker. Raises LakeError where it does not answer."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline

    def checkpoint(self) -> Checkpoint | None:
        """The greatest of the commit log; None where the streamer has not released anything yet. Raises LakeError where
        the stream up to there is in topics that the file does not name."""
        records = self._records(names.commit_log_topic(self.pipeline))
        own = [record for record in records if record.key == self.pipeline.name.encode()]
        found = Checkpoint.greatest(said(self.pipeline, own, COMMIT_LOG))
        if found and found.flavor not in (None, self.pipeline.source.flavor):
            cause, way = steps.other_flavor(self.pipeline, str(found.flavor))
            raise LakeError(f"pipeline {self.pipeline.name}: {cause}. {way}")
        if found and (templates := self.pipeline.kafka.unnamed(found.named_by)):
            cause, way = steps.unnamed_topics(self.pipeline, templates)
            raise LakeError(f"pipeline {self.pipeline.name}: {cause}. {way}")
        return found

    def schemas(self) -> list[TableSchema]:
        """As the lake is to have them."""
        records = self._records(names.schemas_topic(self.pipeline))
        return [self.pipeline.lake.lands(schema) for schema in said(self.pipeline, records, SCHEMAS)]

    def ddl(self, read: Mapping[int, int]) -> tuple[list[DdlRecord], dict[int, int]]:
        """The DDL topic's records behind the offsets `read` of its partitions, and the offsets behind the last ones."""
        found, ends, topic = list[DdlRecord](), dict(read), names.ddl_topic(self.pipeline)
        with Reading(self.pipeline) as consumer:
            for number in numbers_of(consumer, topic):
                low, high = consumer.get_watermark_offsets(TopicPartition(topic, number), SECONDS)
                begin = read.get(number, 0) if read.get(number, 0) <= high else low  # a topic that was made again
                found += said(self.pipeline, records_of(consumer, topic, number, begin), DDL)
                ends[number] = high
        return found, ends

    def topics(self, read: Collection[str]) -> dict[str, list[int]]:
        """The broker's event topics of this pipeline, each with its partitions; and of those that were `read` before
        the ones that tables.include no longer has."""
        with Reading(self.pipeline) as consumer:
            found = consumer.list_topics(timeout=SECONDS).topics
        wanted = {*names.event_topics(self.pipeline, found), *(topic for topic in read if topic in found)}
        return {topic: sorted(found[topic].partitions) for topic in sorted(wanted)}

    def has(self, topic: str) -> bool:
        with Reading(self.pipeline) as consumer:
            return topic in consumer.list_topics(timeout=SECONDS).topics  # of one alone, the broker might make it

    def topic_ids(self, topics: Collection[str]) -> dict[str, str]:
        """The topics' ids; a broker that knows no ids gives none."""
        if not topics:
            return {}
        with Reading(self.pipeline):
            admin = administrator(self.pipeline)
            asked = admin.describe_topics(TopicCollection(list(topics)), request_timeout=SECONDS)
            found = {topic: str(told.result().topic_id) for topic, told in asked.items()}
        return {topic: id for topic, id in found.items() if id != NO_ID}

    def settings(self, topics: Collection[str]) -> dict[str, dict[str, str]]:
        """The topics' settings, as the broker has them; without those that it does not tell: a topic is gone, or the
        user may not ask."""
        if not topics:
            return {}
        asked = [ConfigResource(ResourceType.TOPIC, topic) for topic in sorted({*topics})]
        found = {}
        with Reading(self.pipeline):
            admin = administrator(self.pipeline)
            for resource, answer in admin.describe_configs(asked, request_timeout=SECONDS).items():
                with suppress(KafkaException):
                    found[resource.name] = {name: entry.value for name, entry in answer.result().items()}
        return found

    def ends(self, topics: Mapping[str, Collection[int]], checkpoint: Checkpoint | None = None) -> Ends:
        """The end of every partition of the topics, of what is committed; 0 where nothing was ever written.

        What the `checkpoint` read before holds stands before them: Kafka commits a transaction partition by partition,
        so that what was written is waited for. What the streamer has not committed then is of a later transaction,
        which it cannot begin before the one before is committed everywhere. Another producer's open transaction keeps
        back what stands behind its begin, whoever's that is: PassingError where the checkpoint holds any of it.
        """
        at = [(name, number) for name, numbers in topics.items() for number in numbers]
        with Reading(self.pipeline):
            client = administrator(self.pipeline)
            written, until = written_ends(client, at), time.monotonic() + COMMIT_SECONDS
            ends = committed_ends(client, at)
            while any(ends[one] < written[one] for one in ends) and time.monotonic() < until:
                time.sleep(COMMIT_POLL_SECONDS)
                ends = committed_ends(client, at)
        held = [one for one in sorted(ends) if ends[one] < written[one]]
        for topic, number in held if checkpoint else ():
            first = self.first(topic, number, ends[topic, number], "read_uncommitted")
            if checkpoint and first and tuple(first[:3]) < checkpoint.place:  # at its place the next one begins
                raise PassingError(
                    f"a transaction of another producer is open in the topic {topic}, partition {number}, from offset "
                    f"{ends[topic, number]} on, and changes that are committed stand behind it, which nobody can read "
                    "until it ends. The next run reads them. Keep other producers out of this pipeline's topics"
                )
        return ends

    def time_of(self, topic: str, partition: int, offset: int) -> int | None:
        """When the record at the offset was written, Unix ms; that of the next one where it is gone, None where all
        up to it are."""
        at = TopicPartition(topic, partition, offset)
        with Reading(self.pipeline) as consumer:
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
        with Reading(self.pipeline):
            return begins(administrator(self.pipeline), partitions)

    def bounds(self, topic: str) -> dict[int, tuple[int, int]]:
        """Where each of the topic's partitions begins and ends; of none where the topic is not there."""
        with Reading(self.pipeline) as consumer:
            numbers = numbers_of(consumer, topic)
            return {n: consumer.get_watermark_offsets(TopicPartition(topic, n), SECONDS) for n in numbers}

    def first(self, topic: str, partition: int, begin: int, isolation: str = "read_committed") -> list[int] | None:
        """The `_seq` of the first change of this pipeline in the partition; None where it has none."""
        with Reading(self.pipeline, isolation) as consumer:
            records = records_of(consumer, topic, partition, begin)
            return next((seq for record in records if (seq := self._sequence(record.value))), None)

    def lasts(self, partitions: Collection[tuple[str, int]]) -> dict[tuple[str, int], tuple[int, list[int]]]:
        """Where each of the partitions ends, and a `_seq` that no change of this pipeline before that is behind.
        Without those where none is among the last records."""
        with Reading(self.pipeline) as consumer:
            found = {(topic, number): self._last(consumer, topic, number) for topic, number in sorted(partitions)}
        return {at: last for at, last in found.items() if last is not None}

    def _last(self, consumer: Consumer, topic: str, number: int) -> tuple[int, list[int]] | None:
        """The greatest: a replay that is under way has sent smaller ones behind it."""
        low, high = consumer.get_watermark_offsets(TopicPartition(topic, number), SECONDS)
        for back in BACK if high > low else ():
            records = records_of(consumer, topic, number, high - back)
            if found := [seq for record in records if (seq := self._sequence(record.value))]:
                return high, max(found)
        return None

    def _sequence(self, value: bytes | None) -> list[int] | None:
        """None of what is no change of this pipeline: another's, a tombstone, something else."""
        try:
            source = json.loads(value or b"{}")["source"]
            return [*map(int, source["seq"])] if source["name"] == self.pipeline.name else None
        except (ValueError, TypeError, LookupError):
            return None

    def _records(self, topic: str) -> Iterator[Record]:
        with Reading(self.pipeline) as consumer:
            for number in numbers_of(consumer, topic):
                yield from records_of(consumer, topic, number)
