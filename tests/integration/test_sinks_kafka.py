"""The contract suites on a real Kafka, and Kafka beside other sinks: each has all, and one that fails holds all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaError, TopicPartition

from contract.pipeline import Pipeline
from contract.schema import TableSchema
from stack.kafka import Kafka
from stack.mysql import MySQL
from streamer import schemas
from streamer.checkpoints.kafka import KafkaCheckpoints
from streamer.checkpoints.port import Checkpoints
from streamer.contract_suites.checkpoints import CheckpointsSuite
from streamer.contract_suites.sink import SinkSuite, Stored
from streamer.kafka import topics
from streamer.sinks.kafka import KafkaSink
from tests.integration.streaming import Make, arrived, insert
from tests.integration.topic_records import once
from tests.integration.without_kafka import in_folder

BOTH = """\
sinks:
  - type: kafka
  - {type: files, path: {folder}/out, max_seconds: 0.5}
"""


def pipeline(kafka: Kafka, name: str) -> Pipeline:
    return Pipeline.model_validate(
        {
            "format": 1, "name": name, "lake": {"path": "lake"}, "tables": {"include": ["shop.*"]},
            "source": {"host": "h", "user": "u", "password": "p", "server_id": 7},
            "kafka": {"bootstrap": kafka.address, "linger_ms": 0},
        }
    )  # fmt: skip


def stored(kafka: Kafka, topic: str) -> Iterator[Stored]:
    """As they are; of several partitions those of one behind those of another."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.address,
            "group.id": "suite",
            "enable.partition.eof": True,
            "client.id": "suite",
            "fetch.wait.max.ms": 10,
        }
    )
    for partition in sorted(consumer.list_topics(topic, timeout=10).topics[topic].partitions):
        consumer.assign([TopicPartition(topic, partition, 0)])
        while (message := consumer.poll(20)) is not None and message.error() is None:
            yield topic, message.key(), message.value() or b""
        assert message is not None
        assert message.error().code() == KafkaError._PARTITION_EOF
    consumer.close()


class TestKafkaSink(SinkSuite):
    @pytest.fixture(autouse=True)
    def place(self, kafka: Kafka, request: pytest.FixtureRequest) -> None:
        name = f"suite{abs(hash(request.node.name)) % 10**8}"
        self.kafka, self.pipeline = kafka, pipeline(kafka, name)
        self.topics = (f"{name}.shop.orders", f"{name}.shop.items")
        config = {"cleanup.policy": "delete"}
        topics.ensure(self.pipeline, [topics.Wanted(topic, 1, 1, config) for topic in self.topics])

    def sink(self) -> KafkaSink:
        return KafkaSink(self.pipeline)

    def stored(self) -> list[Stored]:
        return [record for topic in self.topics for record in stored(self.kafka, topic)]


class TestCommitLog(CheckpointsSuite):
    """The pipeline's name is the suite's, so each test has topics of its own by their making anew."""

    @pytest.fixture(autouse=True)
    def place(self, kafka: Kafka, own_topics: Callable[[Pipeline], None]) -> Iterator[None]:
        self.pipeline = pipeline(kafka, "suite")
        own_topics(self.pipeline)
        self.sinks: list[KafkaSink] = []
        yield
        for sink in self.sinks:
            sink.close()

    def checkpoints(self) -> Checkpoints:
        self.sinks.append(KafkaSink(self.pipeline))
        return KafkaCheckpoints(self.pipeline, self.sinks[-1])

    def turn(self) -> None:
        for sink in self.sinks:
            sink.poll(0.01)

    def keep(self, opened: Checkpoints, one: TableSchema) -> None:
        """Every sink has a schema before it is kept."""
        told: list[object] = []
        self.sinks[-1].send(
            "suite.schemas", [schemas.key(one)], [schemas.value(one)], lambda error, _: told.append(error)
        )
        assert self.sinks[-1].flush(10) == 0
        assert told == [None]
        opened.keep(one)


@pytest.fixture
def own_topics(kafka: Kafka) -> Callable[[Pipeline], None]:
    def make(given: Pipeline) -> None:
        client = topics.broker.admin(given.kafka)
        wanted = topics.service_topics(given)
        there = set(client.list_topics(timeout=10).topics)
        if gone := [one.name for one in wanted if one.name in there]:
            for future in client.delete_topics(gone).values():
                future.result()
        while set(client.list_topics(timeout=10).topics) & {one.name for one in wanted}:
            pass
        topics.ensure(given, wanted)

    return make


def test_kafka_and_files_have_the_same_and_the_checkpoint_is_of_both(
    make: Make, mysql: MySQL, kafka: Kafka, tmp_path: Path
) -> None:
    name = "twosinks"
    streamer = make(name, delivery="at_least_once")
    streamer.file.write_text(streamer.file.read_text() + BOTH.replace("{folder}", str(tmp_path)))
    streamer.started()
    insert(mysql, name, 0, 500)
    streamer.kill()
    streamer.started()
    insert(mysql, name, 500, 500)
    status = streamer.wait_until_released()
    assert [(sink["title"], sink["healthy"]) for sink in status["sinks"]] == [
        ("Kafka", True), (f"the folder {tmp_path}/out", True)
    ]  # fmt: skip
    shown = streamer.command("status")
    assert "Kafka" in shown.stdout
    assert f"the folder {tmp_path}/out" in shown.stdout
    assert streamer.stop() == 0
    assert arrived(kafka, name) == list(range(1000))
    found = once(in_folder(tmp_path / "out", f"{name}.{name}.t"))
    assert [record.key["id"] for record in found] == list(range(1000))
    assert in_folder(tmp_path / "out", f"{name}.commit-log") == [], "it is no sink's"


def test_a_folder_that_fails_ends_the_stream_before_anything_passes(
    make: Make, mysql: MySQL, kafka: Kafka, tmp_path: Path
) -> None:
    name = "onefails"
    streamer = make(name, delivery="at_least_once")
    streamer.file.write_text(streamer.file.read_text() + BOTH.replace("{folder}", str(tmp_path)))
    streamer.started()
    insert(mysql, name, 0, 10)
    streamer.wait_until_released()
    topic = tmp_path / "out" / f"{name}.{name}.t"
    streamer.wait_for(lambda _: not list(topic.glob(".*.part")))
    aside = topic.rename(tmp_path / "aside")
    topic.write_text("in the way")
    insert(mysql, name, 10, 10)
    assert streamer.end() == 1
    log = streamer.log()
    assert json.loads(log.splitlines()[-1])["kind"] == "sink"
    assert str(tmp_path / "out") in log
    assert "Traceback" not in log
    topic.unlink()
    aside.rename(topic)
    streamer.started().wait_until_released()
    assert streamer.stop() == 0
    assert [record.key["id"] for record in once(in_folder(tmp_path / "out", f"{name}.{name}.t"))] == list(range(20))
    assert arrived(kafka, name) == list(range(20))
