"""Which of a pipeline's topics have ever held a record: asked where the pipeline has no checkpoint."""

from __future__ import annotations

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from contract import names
from contract.pipeline import Pipeline
from streamer.kafka import broker
from streamer.kafka.topics import TIMEOUT_SECONDS


def used(pipeline: Pipeline) -> list[str]:
    """The event topics, and the schemas, into which something was written, by name. Raises as `ensure` does.

    Records that have expired count: where they were, a first start would leave a gap."""
    client = broker.admin(pipeline.kafka)
    try:
        topics = client.list_topics(timeout=TIMEOUT_SECONDS).topics
        ours = [*names.event_topics(pipeline, topics), *{names.schemas_topic(pipeline)}.intersection(topics)]
        return written(client, [TopicPartition(name, number) for name in ours for number in topics[name].partitions])
    except KafkaException as error:
        raise broker.typed(error, "looking at the topics of", pipeline.kafka) from None


def written(client: AdminClient, partitions: list[TopicPartition]) -> list[str]:
    """The topics of which a partition's end is not its very beginning. Raises KafkaException."""
    if not partitions:
        return []
    ends = client.list_offsets(dict.fromkeys(partitions, OffsetSpec.latest()))
    return sorted({partition.topic for partition, future in ends.items() if future.result().offset > 0})
