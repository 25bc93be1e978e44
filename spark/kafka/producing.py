"""Records that a job itself sends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from confluent_kafka import Producer

ANY = -1  # the partitioner's


def produce(
    producer: Producer,
    topic: str,
    value: bytes | None,
    key: str,
    told: Callable[[Any, Any], None],
    partition: int = ANY,
) -> None:
    """Waits where the client's own queue is full. Raises KafkaException."""
    while True:
        producer.poll(0)
        try:
            return producer.produce(topic, value, key, partition, on_delivery=told)
        except BufferError:
            producer.poll(1)
