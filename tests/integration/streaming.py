"""A streamer as a process of its own over a pipeline file, and its topics read back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, TopicPartition

from stack.kafka import Kafka
from stack.mysql import MySQL
from stack.ports import free_port

ROOT = Path(__file__).parents[2]
PIPELINE = """\
format: 1
name: {name}
source:
  host: {host}
  port: {mysql_port}
  user: headrace
  password: ${{TEST_PASSWORD}}
  server_id: {server_id}
  heartbeat_seconds: 1
tables: {{include: ["{name}.*"], exclude: ["*.hidden*"]}}
kafka: {{bootstrap: "{kafka}", partitions: 2{kafka_more}}}
streamer:
  start: {start}
  http: {{port: {http}}}
  shutdown_seconds: {shutdown}
  stuck_after_seconds: {stuck}
  ledger: {{max_events: {max_events}}}
lake: {{path: {folder}/lake}}
"""
# A pipeline's name is also its database here: names without hyphens keep that simple.


class Streamer:
    """`headrace run` on a pipeline file of its own; the database has the pipeline's name."""

    def __init__(self, folder: Path, mysql: MySQL, kafka: Kafka, name: str, **more: Any) -> None:
        self.name = name
        self.mysql = mysql
        self.kafka = kafka
        self.file = folder / f"{name}.yaml"
        self.log_path = folder / f"{name}.log"
        self.password = mysql.password
        values = {
            "host": "127.0.0.1", "mysql_port": mysql.port, "server_id": 1000 + free_port(), "kafka": kafka.address,
            "kafka_more": "", "start": "latest", "http": free_port(), "stuck": 60, "shutdown": 15,
            "max_events": 200_000,
        }  # fmt: skip
        self.values = {**values, **more}
        self.file.write_text(PIPELINE.format(name=name, folder=folder, **self.values))
        self.process: subprocess.Popen[bytes] | None = None

    def command(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Another of headrace's commands, with the pipeline file as its last argument."""
        return subprocess.run(
            [sys.executable, "-m", "streamer.cli", *arguments, str(self.file)],
            env=self._environment(), cwd=ROOT, capture_output=True, text=True, timeout=60,
        )  # fmt: skip

    def start(self) -> None:
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "streamer.cli", "run", "--log", "json", str(self.file)],
                env=self._environment(), cwd=ROOT, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            )  # fmt: skip

    def started(self) -> Streamer:
        """Starts it and waits until it streams."""
        self.start()
        self.wait_for(lambda status: status["state"] == "streaming" and status["source"]["connected"])
        return self

    def status(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.values['http']}/status", timeout=5) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def wait_for(self, holds: Callable[[dict[str, Any]], Any], seconds: float = 60) -> dict[str, Any]:
        until = time.monotonic() + seconds
        status: dict[str, Any] = {}
        while time.monotonic() < until:
            assert self.process is not None
            assert self.process.poll() is None, f"the streamer has ended:\n{self.log()}"
            try:
                status = self.status()
                if holds(status):
                    return status
            except (OSError, KeyError):
                pass
            time.sleep(0.05)
        raise AssertionError(f"not within {seconds} s: {json.dumps(status, indent=1)}\n{self.log()}")

    def wait_until_released(self, seconds: float = 60) -> dict[str, Any]:
        """Until everything that the server has committed by now is in a durable checkpoint."""
        with self.mysql.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT @@global.gtid_executed")
            [executed] = cursor.fetchone()
            query = "SELECT GTID_SUBSET(%s, %s)"

            def holds(status: dict[str, Any]) -> bool:
                cursor.execute(query, (executed, status["checkpoint"]["gtid_set"]))
                return bool(cursor.fetchone()[0])

            return self.wait_for(holds, seconds)

    def kill(self) -> None:
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    def stop(self, seconds: float = 30) -> int:
        """SIGTERM; the exit status."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(seconds)

    def end(self, seconds: float = 60) -> int:
        """Waits until it ends by itself; the exit status."""
        assert self.process is not None
        return self.process.wait(seconds)

    def log(self) -> str:
        return self.log_path.read_text()

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.kill()

    def _environment(self) -> dict[str, str]:
        path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        return {**os.environ, "TEST_PASSWORD": self.password, "PYTHONPATH": path}


def execute(mysql: MySQL, *statements: str) -> None:
    with mysql.connect() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def rows(mysql: MySQL, table: str) -> dict[int, tuple[Any, ...]]:
    with mysql.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table}")
        return {row[0]: row for row in cursor.fetchall()}


def replayed(found: list[Record]) -> dict[int, tuple[Any, ...]]:
    """The table that the events make."""
    table: dict[int, tuple[Any, ...]] = {}
    for record in found:
        after = record.value["after"]
        if after is None:
            del table[record.key["id"]]
        else:
            table[record.key["id"]] = tuple(after.values())
    return table


class Record(NamedTuple):
    partition: int
    key: Any
    value: Any

    @property
    def seq(self) -> tuple[int, ...]:
        return tuple(self.value["source"]["seq"])

    @property
    def identity(self) -> tuple[str, int, int]:
        return (self.value["source"]["gtid"], self.seq[3], self.seq[4])


def records(kafka: Kafka, topic: str) -> list[Record]:
    """All of a topic's records, partition by partition in offset order."""
    return list(_records(kafka, topic))


def _records(kafka: Kafka, topic: str) -> Iterator[Record]:
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.address,
            "group.id": "test",
            "enable.partition.eof": True,
            "enable.auto.commit": False,
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
        for partition in sorted(partitions):
            consumer.assign([TopicPartition(topic, partition, 0)])
            while True:
                message = consumer.poll(20)
                assert message is not None, "the broker is silent"
                if (error := message.error()) is not None:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    break
                key, value = message.key(), message.value()
                # The commit log's key is the pipeline's bare name.
                yield Record(
                    partition, json.loads(key) if key and key[:1] == b"{" else key, value and json.loads(value)
                )
    finally:
        consumer.close()


def once(found: list[Record]) -> list[Record]:
    """Without a replay's duplicates, as the lake cuts them: in each partition only what is above its mark. Checks
    that a replay repeats the same records in the same order."""
    kept: list[Record] = []
    by_partition: dict[int, list[Record]] = {}
    for record in found:
        by_partition.setdefault(record.partition, []).append(record)
    for sequence in by_partition.values():
        kept += _once(sequence)
    return kept


def _once(sequence: list[Record]) -> list[Record]:
    kept: list[Record] = []
    places: dict[tuple[int, ...], int] = {}
    expected: int | None = None  # place in `kept` of the record that a replay must send next
    for record in sequence:
        if not kept or record.seq > kept[-1].seq:
            assert expected is None or expected == len(kept), "a replay left records out"
            expected = None
            places[record.seq] = len(kept)
            kept.append(record)
            continue
        place = places[record.seq]
        assert _same(kept[place], record), "a replay changed a record"
        # Either the replay goes on, or another one begins (the streamer was killed again).
        assert place == expected or expected is None or place < expected, "a replay left records out"
        expected = place + 1
    return kept


def _same(one: Record, other: Record) -> bool:
    return one.key == other.key and {**one.value, "ts_ms": 0} == {**other.value, "ts_ms": 0}
