"""A streamer as a process of its own over a pipeline file; the fixture `make`, and what its tests do to the servers."""

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
from typing import Any

import pytest

from contract import gtids
from contract.gtid import GtidSet
from contract.gtid_places import UpTo
from stack.database import Database
from stack.kafka import Kafka
from stack.mysql import MySQL
from stack.ports import free_port
from tests.integration.decoding import executed
from tests.integration.topic_records import once, records

ROOT = Path(__file__).parents[2]
PIPELINE = """\
format: 1
name: {name}
source:
  flavor: {flavor}
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
  delivery: {delivery}
  shutdown_seconds: {shutdown}
  stuck_after_seconds: {stuck}
  ledger: {{max_events: {max_events}}}
lake: {{path: {folder}/lake}}
"""


# A pipeline's name is also its database here: names without hyphens keep that simple.


class Streamer:
    """`headrace run` on a pipeline file of its own; the database has the pipeline's name."""

    def __init__(self, folder: Path, mysql: Database, kafka: Kafka, name: str, **more: Any) -> None:
        self.name = name
        self.mysql = mysql
        self.kafka = kafka
        self.file = folder / f"{name}.yaml"
        self.log_path = folder / f"{name}.log"
        self.password = mysql.password
        values = {
            "flavor": mysql.flavor,
            "host": "127.0.0.1", "mysql_port": mysql.port, "server_id": 1000 + free_port(), "kafka": kafka.address,
            "kafka_more": "", "delivery": "exactly_once", "start": "latest", "http": free_port(), "stuck": 60,
            "shutdown": 15, "max_events": 200_000,
        }  # fmt: skip
        self.values = {**values, **more}
        self.file.write_text(PIPELINE.format(name=name, folder=folder, **self.values))
        self.process: subprocess.Popen[bytes] | None = None

    def command(self, name: str, *arguments: str) -> subprocess.CompletedProcess[str]:
        """Another of headrace's commands on the pipeline file."""
        return subprocess.run(
            [sys.executable, "-m", "streamer.cli", name, str(self.file), *arguments],
            env=self._environment(), cwd=ROOT, capture_output=True, text=True, timeout=60,
        )  # fmt: skip

    def start(self, *options: str) -> None:
        with self.log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "streamer.cli", "run", "--log", "json", str(self.file), *options],
                env=self._environment(), cwd=ROOT, stdout=log, stderr=log, stdin=subprocess.DEVNULL,
            )  # fmt: skip

    def started(self) -> Streamer:
        """Starts it and waits until it streams."""
        self.start()
        return self.wait_until_streaming()

    def wait_until_streaming(self) -> Streamer:
        self.wait_for(lambda status: status["state"] == "streaming" and status["source"]["connected"])
        return self

    def status(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.values['http']}/status", timeout=5) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def metrics(self) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.values['http']}/metrics", timeout=5) as answer:
            found: str = answer.read().decode()
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
        end = executed(self.mysql)
        return self.wait_for(lambda status: behind(status["checkpoint"], end).issuperset(end), seconds)

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


Make = Callable[..., Streamer]


@pytest.fixture
def make(tmp_path: Path, mysql: MySQL, kafka: Kafka) -> Iterator[Make]:
    """A streamer over the session's servers, or over those given; its database, named as the pipeline, holds the
    table `t (id, v, name)`."""
    made: list[Streamer] = []

    def one(name: str, mysql: Database = mysql, kafka: Kafka = kafka, **more: Any) -> Streamer:
        execute(
            mysql,
            f"CREATE DATABASE IF NOT EXISTS {name}",
            f"CREATE TABLE IF NOT EXISTS {name}.t (id BIGINT PRIMARY KEY, v INT, name VARCHAR(40))",
        )
        made.append(Streamer(tmp_path, mysql, kafka, name, **more))
        return made[-1]

    yield one
    for streamer in made:
        streamer.close()


def behind(checkpoint: dict[str, Any], end: GtidSet) -> GtidSet:
    """What is released; of a server without GTIDs the place tells."""
    if isinstance(end, UpTo):
        return UpTo.place(checkpoint["file"], checkpoint["pos"])
    return gtids.parse(checkpoint["gtid_set"])


def fails(streamer: Streamer, *words: str, status: int = 1) -> str:
    """The run ends by itself with one message that holds the words, and no traceback."""
    streamer.start()
    assert streamer.end() == status, streamer.log()
    log = streamer.log()
    assert "Traceback" not in log
    for word in words:
        assert word in log, log
    assert streamer.password not in log
    return log


def execute(mysql: Database, *statements: str) -> None:
    with mysql.connect() as connection, connection.cursor() as cursor:
        for statement in statements:
            cursor.execute(statement)


def insert(mysql: Database, db: str, first: int, count: int) -> None:
    values = ",".join(f"({n}, {n}, 'x')" for n in range(first, first + count))
    execute(mysql, f"INSERT INTO {db}.t VALUES {values}")


def rows(mysql: Database, table: str) -> dict[int, tuple[Any, ...]]:
    with mysql.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table}")
        return {row[0]: row for row in cursor.fetchall()}


def arrived(kafka: Kafka, db: str) -> list[int]:
    return sorted(record.key["id"] for record in once(records(kafka, f"{db}.{db}.t")))


def kill_dumps(cursor: Any, user: str) -> None:
    """Ends the user's binlog connections, as root."""
    query = "SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%%' AND user = %s"
    cursor.execute(query, (user,))
    for (number,) in cursor.fetchall():
        cursor.execute(f"KILL {number}")
