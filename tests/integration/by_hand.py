"""A pipeline without a streamer: what that would write to Kafka is written by hand."""

from __future__ import annotations

from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from contract.pipeline import Pipeline, load
from stack.kafka import Kafka
from tests.spark.sessions import pipeline_in


def pipeline_of(folder: Path, kafka: Kafka, name: str, more: str = "") -> Pipeline:
    """Its database has its name; its lake is in the folder. `more` lines of the file."""
    file = Path(pipeline_in(folder).path)
    text = file.read_text().replace("name: shop", f"name: {name}").replace('"shop.*"', f'"{name}.*"')
    file.write_text(text.replace("127.0.0.1:1", kafka.address) + more)
    return load(file)


def make_topics(kafka: Kafka, *topics: str) -> None:
    """Of one partition each."""
    client = AdminClient({"bootstrap.servers": kafka.address})
    for made in client.create_topics([NewTopic(topic, 1, 1) for topic in topics]).values():
        made.result()


def send(kafka: Kafka, topic: str, *messages: tuple[bytes | None, bytes]) -> None:
    """Keys and values, in this order."""
    producer = Producer({"bootstrap.servers": kafka.address})
    for key, value in messages:
        producer.produce(topic, value, key, 0)
    assert producer.flush(30) == 0
