"""Where partitions begin and end: of all of them by one question to each broker, however many they are."""

from __future__ import annotations

from collections.abc import Collection

from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from contract.pipeline import Pipeline
from spark.kafka.reading import SECONDS, Silent, connection

Partitions = Collection[tuple[str, int]]  # (topic, number)
Ends = dict[tuple[str, int], int]  # (topic, number) -> the offset behind the last record


def administrator(pipeline: Pipeline) -> AdminClient:
    return AdminClient(connection(pipeline), logger=Silent())


def written_ends(client: AdminClient, partitions: Partitions) -> Ends:
    """Behind what was written, committed or not. Raises KafkaException."""
    return _asked(client, partitions, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED)


def committed_ends(client: AdminClient, partitions: Partitions) -> Ends:
    """Where a transaction is open, its first record's. Raises KafkaException."""
    return _asked(client, partitions, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED)


def begins(client: AdminClient, partitions: Partitions) -> Ends:
    """The first offset that each of them still has. Raises KafkaException."""
    return _asked(client, partitions, OffsetSpec.earliest(), IsolationLevel.READ_UNCOMMITTED)


def _asked(client: AdminClient, partitions: Partitions, which: OffsetSpec, isolation: IsolationLevel) -> Ends:
    if not partitions:
        return {}
    at = {TopicPartition(*partition): which for partition in partitions}
    answers = client.list_offsets(at, isolation_level=isolation, request_timeout=SECONDS)
    return {(one.topic, one.partition): answer.result().offset for one, answer in answers.items()}
