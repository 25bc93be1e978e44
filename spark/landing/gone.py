"""Partitions that the landing's query has in its checkpoint, and Kafka has no more."""

from __future__ import annotations

from contract import steps
from contract.pipeline import Pipeline
from spark.errors import LakeError
from spark.kafka.offsets import Ends


def gone(done: Ends, ends: Ends) -> str | None:
    """In words, what was read and is not in Kafka any more: a topic that was made again begins at 0, and its
    records up to the old place would be passed by."""
    for (topic, number), at in sorted(done.items()):
        end = ends.get((topic, number))
        if at and end is None:
            return f"partition {number} of {topic} is gone; {at} records of it were read"
        if end is not None and end < at:
            return (
                f"partition {number} of {topic} ends at {end} and was read up to {at}: the topic was made again or cut"
            )
    return None


def refuse_gone_unread(pipeline: Pipeline, done: Ends, ends: Ends) -> None:
    """Spark takes for lost what its checkpoint has and Kafka has not, also a partition that was empty. Raises
    LakeError."""
    missing = [topic for topic, number in sorted(done) if (topic, number) not in ends]
    if not missing:
        return
    topic = missing[0]
    count = max(number for name, number in done if name == topic) + 1
    partitions = f"{count} partition{'s' if count > 1 else ''}"
    raise LakeError(
        f"the topic {topic} is gone, or some of its partitions. The lake has read nothing of these, since they were "
        f"empty, and nothing that it has is lost; but Spark does not go on without them. Make the topic again, with "
        f"{partitions}: {steps.topics(pipeline)}; where the source has no such table any more, by Kafka's own "
        f"kafka-topics --create --topic {topic} --partitions {count}. Then run this again. Nobody knows whether it had "
        f"got records since, so its tables count as not snapshotted then: {steps.snapshot(pipeline)} for them"
    )
