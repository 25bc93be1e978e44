"""What Kafka does while the streamer writes to it: topics set otherwise, records it refuses, a broker that is away."""

from __future__ import annotations

import random
import string
import time
from collections.abc import Callable

import pytest
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic, ResourceType

from stack.kafka import Kafka
from stack.mysql import MySQL
from tests.integration.streaming import Make, arrived, execute, fails, insert
from tests.integration.topic_records import once, records


def create(kafka: Kafka, topic: NewTopic) -> None:
    client = AdminClient({"bootstrap.servers": kafka.address})
    for future in client.create_topics([topic]).values():
        future.result()


def alter(kafka: Kafka, topic: str, setting: str, value: str) -> None:
    entry = ConfigEntry(setting, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    client = AdminClient({"bootstrap.servers": kafka.address})
    for future in client.incremental_alter_configs([resource]).values():
        future.result()


def test_an_event_topic_that_compacts_is_refused(make: Make, mysql: MySQL, kafka: Kafka) -> None:
    topic = NewTopic("compacts.compacts.t", 1, 1, config={"cleanup.policy": "compact"})
    create(kafka, topic)
    streamer = make("compacts")
    refused = streamer.command("topics")
    assert refused.returncode == 1
    assert "loses deletes" in refused.stderr
    assert "Traceback" not in refused.stderr
    streamer.started()
    insert(mysql, "compacts", 1, 3)
    assert streamer.end() == 1
    assert "cleanup.policy=delete" in streamer.log()
    assert "Traceback" not in streamer.log()
    insert(mysql, "compacts", 4, 3)
    alter(kafka, "compacts.compacts.t", "cleanup.policy", "delete")
    streamer.started().wait_until_released()
    assert [record.key["id"] for record in records(kafka, "compacts.compacts.t")] == [1, 2, 3, 4, 5, 6]


def test_a_topic_with_other_settings_is_used_and_told_of(make: Make, mysql: MySQL, kafka: Kafka) -> None:
    topic = NewTopic("differs.differs.t", 5, 1, config={"retention.ms": "1000000"})
    create(kafka, topic)
    streamer = make("differs").started()
    insert(mysql, "differs", 1, 50)
    streamer.wait_until_released()
    assert "partitions is 5, the pipeline file wants 2" in streamer.log()
    assert arrived(kafka, "differs") == list(range(1, 51))
    told = streamer.command("topics")
    assert told.returncode == 0
    assert "differs" in told.stdout


@pytest.mark.parametrize("delivery", ["at_least_once", "exactly_once"])
def test_a_record_too_large_stops_before_it_and_goes_on_behind(
    make: Make, mysql: MySQL, kafka: Kafka, delivery: str
) -> None:
    """Pitfall: an oversized record."""
    name = "oversized" + delivery.replace("_", "")
    streamer = make(name, kafka_more=", max_message_bytes: 2000", delivery=delivery).started()
    execute(mysql, f"CREATE TABLE {name}.big (id INT PRIMARY KEY, text TEXT)")
    insert(mysql, name, 1, 10)
    execute(mysql, f"INSERT INTO {name}.big VALUES (1, 'a'), (2, REPEAT('x', 3000)), (3, 'b')")
    insert(mysql, name, 11, 10)
    assert streamer.end() == 1
    assert "record_too_large" in streamer.log()
    if delivery == "at_least_once":
        assert '"flushed"' in streamer.log(), "it does not wait for what can never be acknowledged"
    assert "Traceback" not in streamer.log()
    assert "xxxx" not in streamer.log()
    assert arrived(kafka, name) == list(range(1, 11))
    streamer.file.write_text(streamer.file.read_text().replace("max_message_bytes: 2000", "max_message_bytes: 200000"))
    alter(kafka, f"{name}.{name}.big", "max.message.bytes", "200000")
    streamer.started().wait_until_released()
    assert arrived(kafka, name) == list(range(1, 21))
    assert sorted(record.key["id"] for record in once(records(kafka, f"{name}.{name}.big"))) == [1, 2, 3]


def test_a_record_that_the_topic_refuses(make: Make, mysql: MySQL, kafka: Kafka) -> None:
    create(kafka, NewTopic("refuses.refuses.t", 1, 1, config={"max.message.bytes": "900"}))
    streamer = make("refuses").started()
    execute(mysql, "ALTER TABLE refuses.t MODIFY name TEXT", "INSERT INTO refuses.t VALUES (1, 1, 'short')")
    # No compression makes this one small enough.
    noise = "".join(random.Random(1).choices(string.ascii_letters, k=3000))
    execute(mysql, f"INSERT INTO refuses.t VALUES (2, 2, '{noise}')")
    insert(mysql, "refuses", 3, 3)
    assert streamer.end() == 1
    assert "refuses.refuses.t" in streamer.log()
    assert "size too large" in streamer.log()
    assert noise not in streamer.log()
    assert "Traceback" not in streamer.log(), streamer.log()
    alter(kafka, "refuses.refuses.t", "max.message.bytes", "100000")
    streamer.started().wait_until_released()
    assert arrived(kafka, "refuses") == [1, 2, 3, 4, 5]


def test_a_table_whose_topic_is_the_pipelines_own(make: Make, mysql: MySQL, kafka: Kafka) -> None:
    streamer = make("meets", kafka_more=', topic: "{db}.{table}"').started()
    insert(mysql, "meets", 0, 5)
    streamer.wait_until_released()
    execute(mysql, "CREATE TABLE meets.schemas (id INT PRIMARY KEY)", "INSERT INTO meets.schemas VALUES (1)")
    assert streamer.end() == 1
    lines = streamer.file.read_text().splitlines()
    line = next(number for number, text in enumerate(lines, 1) if text.startswith("kafka:"))
    where = f"{streamer.file}:{line}: kafka.topic"
    for told in (streamer.log(), streamer.command("topics").stderr, streamer.command("check").stdout):
        text = "".join(told.split())
        assert "thetopicoftablemeets.schemaswouldbemeets.schemas" in text
        assert "".join(where.split()) in text
        assert "Traceback" not in text
    insert(mysql, "meets", 5, 5)
    streamer.file.write_text(streamer.file.read_text().replace('"*.hidden*"', '"*.hidden*", "meets.schemas"'))
    streamer.started().wait_until_released()
    assert sorted(record.key["id"] for record in records(kafka, "meets.t")) == list(range(10))
    assert [record.key for record in records(kafka, "meets.schemas")] == [{"db": "meets", "table": "t", "version": 1}]


def test_a_commit_log_that_forgets_is_refused(make: Make, mysql: MySQL, kafka: Kafka) -> None:
    streamer = make("forgets").started()
    insert(mysql, "forgets", 0, 5)
    streamer.wait_until_released()
    assert streamer.stop() == 0
    alter(kafka, "forgets.commit-log", "cleanup.policy", "delete")
    fails(streamer, "forget where the pipeline stands", "cleanup.policy=compact")
    insert(mysql, "forgets", 5, 5)
    alter(kafka, "forgets.commit-log", "cleanup.policy", "compact")
    streamer.started().wait_until_released()
    assert sorted(record.key["id"] for record in records(kafka, "forgets.forgets.t")) == list(range(10))


@pytest.mark.soak
def test_kafka_down_at_the_start(make: Make, mysql: MySQL, kafka_server: Callable[..., Kafka]) -> None:
    own = kafka_server()
    own.stop()
    streamer = make("late", kafka=own)
    for first in (0, 5):  # a first start, and one with a checkpoint
        streamer.start()
        streamer.wait_for(lambda status: (status["state"], status["waiting_for"]) == ("waiting", "Kafka"))
        assert '"waiting"' in streamer.log()
        insert(mysql, "late", first, 5)
        own.start()
        streamer.wait_for(lambda status: status["state"] == "streaming")
        streamer.wait_until_released()
        assert sorted(record.key["id"] for record in records(own, "late.late.t")) == list(range(first + 5))
        assert streamer.stop() == 0
        own.stop()


@pytest.mark.parametrize("delivery", ["at_least_once", "exactly_once"])
@pytest.mark.soak
def test_kafka_down_in_the_middle(make: Make, mysql: MySQL, kafka_server: Callable[..., Kafka], delivery: str) -> None:
    own = kafka_server()
    name = "away" + delivery.replace("_", "")
    streamer = make(name, kafka=own, max_events=2000, delivery=delivery).started()
    insert(mysql, name, 0, 100)
    streamer.wait_until_released()
    own.kill()
    for n in range(1, 60):
        insert(mysql, name, n * 100, 100)
    status = streamer.wait_for(lambda status: (status["state"], status["waiting_for"]) == ("waiting", "Kafka"))
    if delivery == "at_least_once":  # the other waits for the end of its transaction, and reads nothing
        assert status["queue"]["events"] >= 2000
    assert status["queue"]["events"] <= 2100, "bounded"
    assert not status["sink"]["healthy"]
    time.sleep(3)
    own.start()
    streamer.wait_until_released(120)
    streamer.wait_for(lambda status: status["state"] == "streaming" and status["sink"]["healthy"])
    assert arrived(own, name) == list(range(6000))
    assert "Traceback" not in streamer.log()
    assert streamer.stop() == 0


def test_a_stop_while_kafka_is_away_ends_in_time(make: Make, mysql: MySQL, kafka_server: Callable[..., Kafka]) -> None:
    own = kafka_server()
    streamer = make("gone", kafka=own, shutdown=3).started()
    insert(mysql, "gone", 0, 10)
    streamer.wait_until_released()
    own.kill()
    insert(mysql, "gone", 10, 10)
    streamer.wait_for(lambda status: status["queue"]["events"] >= 10)
    began = time.monotonic()
    assert streamer.stop() == 0
    assert time.monotonic() - began < 10
    assert "sent again at the next start" in streamer.log()
    own.start()
    streamer.started().wait_until_released()
    assert arrived(own, "gone") == list(range(20))
