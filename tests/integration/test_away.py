"""Away is not stuck: Kafka gone under load for HEADRACE_AWAY_SECONDS or longer, MySQL dropping the dump that
nobody reads meanwhile: memory stays bounded, both streamers go on by themselves, and nothing is lost."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil
from confluent_kafka import Consumer, KafkaError, TopicPartition

from stack.kafka import Kafka
from stack.mysql import MySQL
from tests.integration.conftest import MySQLServer
from tests.integration.streaming import Make, Streamer, execute

SECONDS = float(os.environ.get("HEADRACE_AWAY_SECONDS", "6"))
LONG = SECONDS > 60
BLOCKED_SECONDS = 2  # after which the server drops a dump that takes nothing
ROWS, TEXT = 50, 4_000
BYTES_SECOND = 1_000_000 if LONG else 8_000_000  # more than sockets' buffers hold, in the time
PATIENCE = 60  # beyond the time, until the server has dropped the dumps
MEMORY = 150_000_000
MODES = ("at_least_once", "exactly_once")


class Load(threading.Thread):
    """A transaction inserts ROWS rows and counts itself in a row that all of them change."""

    def __init__(self, mysql: MySQL, databases: list[str]) -> None:
        super().__init__(daemon=True)
        self._mysql, self._databases = mysql, databases
        self.stopping = threading.Event()
        self.transactions = 0

    def run(self) -> None:
        with self._mysql.connect(autocommit=False) as connection, connection.cursor() as cursor:
            while not self.stopping.is_set():
                began = time.monotonic()
                for database in self._databases:
                    first = self.transactions * ROWS
                    rows = ",".join(f"({first + n}, REPEAT('x', {TEXT}))" for n in range(ROWS))
                    cursor.execute(f"INSERT INTO {database}.big VALUES {rows}")
                    cursor.execute(f"UPDATE {database}.counter SET n = n + 1")
                    connection.commit()
                self.transactions += 1
                self.stopping.wait(max(0.0, ROWS * TEXT / BYTES_SECOND - (time.monotonic() - began)))


def read(kafka: Kafka, topic: str) -> Iterator[Any]:
    """The values of a topic's committed records, one at a time."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.address, "group.id": "away", "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,
            "isolation.level": "read_committed",
        }
    )  # fmt: skip
    for partition in consumer.list_topics(topic, timeout=10).topics[topic].partitions:
        consumer.assign([TopicPartition(topic, partition, 0)])
        while (message := consumer.poll(30)) is not None and message.error() is None:
            yield json.loads(message.value() or b"null")
        assert message is not None
        assert message.error().code() == KafkaError._PARTITION_EOF
    consumer.close()


def dumps(mysql: MySQL) -> int:
    with mysql.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'")
        return int(cursor.fetchone()[0])


def memory(streamer: Streamer) -> int:
    assert streamer.process is not None
    return int(psutil.Process(streamer.process.pid).memory_info().rss)


def test_kafka_gone_under_load(make: Make, mysql_server: MySQLServer, kafka_server: Callable[..., Kafka]) -> None:
    mysql, kafka = mysql_server([f"net_write_timeout={BLOCKED_SECONDS}"]), kafka_server()
    streamers = [make(f"gone{mode.replace('_', '')}", mysql, kafka, delivery=mode, max_events=2000) for mode in MODES]
    for streamer in streamers:
        execute(
            mysql,
            f"CREATE TABLE {streamer.name}.big (id BIGINT PRIMARY KEY, text TEXT)",
            f"CREATE TABLE {streamer.name}.counter (id INT PRIMARY KEY, n BIGINT)",
            f"INSERT INTO {streamer.name}.counter VALUES (1, 0)",
        )
        streamer.start()
    for streamer in streamers:
        streamer.wait_until_streaming()
    load = Load(mysql, [streamer.name for streamer in streamers])
    load.start()
    for streamer in streamers:
        streamer.wait_for(lambda status: status["events"]["tables"][f"{status['pipeline']}.counter"]["u"] >= 10)
    before = [memory(streamer) for streamer in streamers]
    kafka.kill()
    until, dropped = time.monotonic() + SECONDS, False
    while time.monotonic() < until or (not dropped and time.monotonic() < until + PATIENCE):
        time.sleep(0.5)
        dropped = dropped or dumps(mysql) == 0
        for streamer, began in zip(streamers, before, strict=True):
            assert streamer.status()["queue"]["events"] <= 2000 + ROWS + 1
            assert memory(streamer) - began < MEMORY, "bounded"
    assert dropped, "the server held the dumps: this run has shown nothing"
    assert {streamer.status()["waiting_for"] for streamer in streamers} == {"Kafka"}
    kafka.start()
    load.stopping.set()
    load.join()
    for streamer in streamers:
        status = streamer.wait_until_released(60 + SECONDS)
        assert status["source"]["reconnects"] >= 1
        assert memory(streamer) - min(before) < 2 * MEMORY
        assert streamer.stop() == 0
        assert "Traceback" not in streamer.log()
        arrived = [value["after"]["id"] for value in read(kafka, f"{streamer.name}.{streamer.name}.big")]
        counted = [value["after"]["n"] for value in read(kafka, f"{streamer.name}.{streamer.name}.counter")]
        assert sorted(set(arrived)) == list(range(load.transactions * ROWS)), "nothing is lost"
        assert list(dict.fromkeys(counted)) == list(range(1, load.transactions + 1)), "and a key keeps its order"
        if streamer.values["delivery"] == "exactly_once":
            assert len(arrived) == load.transactions * ROWS
            assert len(counted) == load.transactions
