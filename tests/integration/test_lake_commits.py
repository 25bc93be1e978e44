"""Where a compaction ends while a streamer's Kafka transaction is open: what is committed soon is waited for."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from contract.pipeline import Pipeline
from spark.errors import PassingError
from spark.kafka import broker as spark_kafka
from spark.kafka.broker import Broker
from stack.kafka import Kafka
from tests.checkpoints import checkpoint

Open = Callable[[str], Producer]


@pytest.fixture
def pipeline(kafka: Kafka, tmp_path: Path) -> Pipeline:
    return Pipeline.model_validate(
        {
            "format": 1,
            "name": "commits",
            "source": {"host": "h", "user": "u", "password": "p", "server_id": 7},
            "tables": {"include": ["commits.*"]},
            "kafka": {"bootstrap": kafka.address},
            "lake": {"path": str(tmp_path)},
        }
    )


def opened(kafka: Kafka, topic: str) -> Producer:
    """A producer with three committed records in the topic, and three that are not committed yet."""
    client = AdminClient({"bootstrap.servers": kafka.address})
    client.create_topics([NewTopic(topic, 1)])[topic].result()
    producer = Producer({"bootstrap.servers": kafka.address, "transactional.id": topic})
    producer.init_transactions(30)
    for number in range(6):
        if number in (0, 3):
            producer.begin_transaction()
        producer.produce(topic, b"{}")
        if number == 2:
            producer.commit_transaction(30)
    producer.flush(30)
    return producer


def test_what_is_committed_in_time_is_waited_for(kafka: Kafka, pipeline: Pipeline) -> None:
    topic = "commits.commits.soon"
    producer = opened(kafka, topic)

    def commit() -> None:
        time.sleep(1)
        producer.commit_transaction(30)

    thread = threading.Thread(target=commit)
    thread.start()
    ends = Broker(pipeline).ends({topic: [0]})
    thread.join()
    assert ends[topic, 0] >= 7, "six records and the first commit"


def test_what_stays_open_is_left_to_the_next_run(
    kafka: Kafka, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_kafka, "COMMIT_SECONDS", 1.0)
    topic = "commits.commits.open"
    producer = opened(kafka, topic)
    assert Broker(pipeline).ends({topic: [0]}) == {(topic, 0): 4}, "three records and their commit"
    producer.abort_transaction(30)


def change(pos: int) -> bytes:
    return json.dumps({"source": {"name": "commits", "seq": [0, 1, pos, 0, 0]}}).encode()


def test_the_streamers_own_transaction_behind_its_checkpoint_keeps_nobody_waiting(
    kafka: Kafka, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It begins where that of the checkpoint ends, and is open for as long as it takes to send, or until the broker
    ends that of a streamer that was killed."""
    monkeypatch.setattr(spark_kafka, "COMMIT_SECONDS", 1.0)
    topic = "commits.commits.large"
    client = AdminClient({"bootstrap.servers": kafka.address})
    client.create_topics([NewTopic(topic, 1)])[topic].result()
    own = Producer({"bootstrap.servers": kafka.address, "transactional.id": topic})
    own.init_transactions(30)
    for pos in (90, 100):
        own.begin_transaction()
        own.produce(topic, change(pos))
        own.flush(30)
        if pos == 90:
            own.commit_transaction(30)
    assert Broker(pipeline).ends({topic: [0]}, checkpoint(pipeline="commits", pos=100)) == {(topic, 0): 2}
    own.abort_transaction(30)


def test_what_another_producer_keeps_back_is_not_passed_by(
    kafka: Kafka, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By its open transaction nobody reads what others have committed behind it."""
    monkeypatch.setattr(spark_kafka, "COMMIT_SECONDS", 1.0)
    topic = "commits.commits.other"
    other = opened(kafka, topic)
    own = Producer({"bootstrap.servers": kafka.address, "transactional.id": f"{topic}.own"})
    own.init_transactions(30)
    own.begin_transaction()
    own.produce(topic, change(99))
    own.commit_transaction(30)
    broker, at = Broker(pipeline), checkpoint(pipeline="commits", pos=100)
    with pytest.raises(
        PassingError, match=r"another producer is open in the topic commits\.commits\.other, partition 0"
    ):
        broker.ends({topic: [0]}, at)
    assert broker.ends({topic: [0]}, at.model_copy(update={"pos": 99})) == {(topic, 0): 4}, "it is of a later one"
    other.abort_transaction(30)
    assert broker.ends({topic: [0]}, at)[topic, 0] >= 9
