"""Which of a pipeline's event topics hold records: asked at a first start."""

from __future__ import annotations

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from contract import names
from contract.pipeline import Pipeline
from streamer import broker
from streamer.topics import TIMEOUT_SECONDS

EARLIEST, LATEST = OffsetSpec.earliest(), OffsetSpec.latest()


def holding_records(pipeline: Pipeline) -> list[str]:
    """The pipeline's event topics in which there are records, by name. Raises as `ensure` does."""
    client = broker.admin(pipeline.kafka)
    try:
        topics = client.list_topics(timeout=TIMEOUT_SECONDS).topics
        ours = names.event_topics(pipeline, topics)
        partitions = [TopicPartition(name, number) for name in ours for number in topics[name].partitions]
        if not partitions:
            return []
        first, end = (_offsets(client, partitions, spec) for spec in (EARLIEST, LATEST))
        filled = {topic for (topic, number), offset in end.items() if offset > first[topic, number]}
    except KafkaException as error:
        raise broker.typed(error, "looking at the topics of", pipeline.kafka) from None
    return sorted(filled)


def _offsets(client: AdminClient, partitions: list[TopicPartition], spec: OffsetSpec) -> dict[tuple[str, int], int]:
    futures = client.list_offsets(dict.fromkeys(partitions, spec))
    return {(partition.topic, partition.partition): future.result().offset for partition, future in futures.items()}
