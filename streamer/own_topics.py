"""Which of the broker's topics are a pipeline's own, and which of them hold records: asked at a first start."""

from __future__ import annotations

import re
from string import Formatter

from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec

from contract.pipeline import Pipeline
from streamer import broker
from streamer.topics import TIMEOUT_SECONDS, service_topics

EARLIEST, LATEST = OffsetSpec.earliest(), OffsetSpec.latest()


def holding_records(pipeline: Pipeline) -> list[str]:
    """The pipeline's event topics in which there are records, by name. Raises as `ensure` does."""
    client = broker.admin(pipeline.kafka)
    service = {topic.name for topic in service_topics(pipeline)}
    try:
        topics = client.list_topics(timeout=TIMEOUT_SECONDS).topics
        ours = {name: t for name, t in topics.items() if name not in service and of_pipeline(pipeline, name)}
        partitions = [TopicPartition(name, number) for name, topic in ours.items() for number in topic.partitions]
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


def of_pipeline(pipeline: Pipeline, topic: str) -> bool:
    """Whether the name is one that a table of this pipeline could give."""
    match = re.fullmatch(_pattern(pipeline), topic)
    if match is None:
        return False
    found = {name: _unescape(value) for name, value in match.groupdict().items()}
    return pipeline.tables.match(found["db"], found["table"]) if len(found) == 2 else True


def _pattern(pipeline: Pipeline) -> str:
    """The file's template as a regular expression with the groups `db` and `table`, where it has these."""
    seen: set[str] = set()
    parts = []
    for text, field, _, _ in Formatter().parse(pipeline.kafka.topic):
        parts.append(re.escape(text))
        if field == "pipeline":
            parts.append(re.escape(pipeline.name))
        elif field is not None:
            parts.append(f"(?P={field})" if field in seen else f"(?P<{field}>[A-Za-z0-9_-]+)")
            seen.add(field)
    return "".join(parts)


def _unescape(part: str) -> str:
    """What contract.names.escape was given."""
    run = re.compile(r"(?:_x[0-9a-f]{2})+")
    return run.sub(lambda m: bytes.fromhex(m[0].replace("_x", "")).decode("utf-8", "replace"), part)
