"""The proof of the streamer's image: rows written to a real MySQL arrive in a real Kafka, and SIGTERM ends it well.

The servers are those of `python -m stack`, on free ports with data of their own, gone afterwards.
"""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from confluent_kafka import Consumer, TopicPartition

from docker.images.container import Container
from stack.errors import StackError
from stack.kafka import Kafka
from stack.mysql import MySQL
from stack.ports import HOST, free_port

PASSWORD = "/run/secrets/headrace_mysql_password"
PIPELINE = """\
format: 1
name: trial
source: {{host: {host}, port: {mysql}, user: headrace, password_file: {password}, server_id: 54900}}
tables: {{include: ["trial.*"]}}
kafka: {{bootstrap: "{host}:{kafka}"}}
streamer: {{start: earliest, http: {{host: {host}, port: {http}}}}}
lake: {{path: /nowhere}}
"""
TABLE = "CREATE TABLE trial.items (id INT PRIMARY KEY, name VARCHAR(40), price DECIMAL(10, 2), at DATETIME(6))"
INSERT = "INSERT INTO trial.items VALUES (%s, %s, %s, NOW(6))"
BATCH = 50


class Servers(NamedTuple):
    mysql: MySQL
    kafka: Kafka


class Engine(Protocol):
    def config(self, tag: str) -> dict[str, Any]: ...

    def start(self, tag: str, words: list[str], mounts: list[tuple[Path, str]], log: Path) -> Container: ...


class Outcome(NamedTuple):
    rows: int
    events: int
    seconds: float


@contextmanager
def servers(folder: Path) -> Iterator[Servers]:
    with ExitStack() as stack:
        mysql = MySQL(folder / "mysql", free_port())
        stack.callback(mysql.stop)
        mysql.start()
        kafka = Kafka(folder / "kafka", free_port(), controller_port=free_port())
        stack.callback(kafka.stop)
        kafka.start()
        yield Servers(mysql, kafka)


def run(engine: Engine, tag: str, folder: Path, seconds: float) -> Outcome:
    """Runs the image for `seconds` while rows come in. Raises StackError where it does not do what it should."""
    with servers(folder) as real:
        http = free_port()
        mounts = files(folder, real, http)
        log = folder.parent / "streamer.log"
        with real.mysql.connect() as connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE trial")
            cursor.execute(TABLE)
        container = engine.start(tag, ["run", "/pipelines/trial.yaml"], mounts, log)
        try:
            refuse_root(container)
            check = health_check(engine, tag, f"HEADRACE_STREAMER_PORT={http}")
            wait_healthy(container, check)
            rows, took = write_rows(real.mysql, seconds, container)
            events = read_events(real.kafka, rows, container)
            code = container.stop(60)
        finally:
            container.close()
    if code:
        raise StackError(f"the streamer ended with status {code} after SIGTERM, not with 0", log=log)
    return Outcome(rows, events, took)


def files(folder: Path, real: Servers, http: int) -> list[tuple[Path, str]]:
    """The pipeline file and the secret, as the container sees them."""
    secret, pipeline = folder / "password", folder / "trial.yaml"
    secret.write_text(real.mysql.password)
    secret.chmod(0o444)
    pipeline.write_text(
        PIPELINE.format(host=HOST, mysql=real.mysql.port, kafka=real.kafka.port, http=http, password=PASSWORD)
    )
    return [(pipeline, "/pipelines/trial.yaml:ro"), (secret, f"{PASSWORD}:ro")]


def refuse_root(container: Container) -> None:
    status, user = container.execute(["id", "-u"])
    if status or user == "0":
        raise StackError(f"the image's processes run as user {user!r}; they must not be root")


def health_check(engine: Engine, tag: str, port: str) -> list[str]:
    """The image's own HEALTHCHECK command, told the port (`VARIABLE=number`)."""
    return ["env", port, *engine.config(tag)["Healthcheck"]["Test"][1:]]


def wait_healthy(container: Container, check: list[str], seconds: float = 180) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        status, said = container.execute(check)
        if status == 0:
            return
        if container.status() is not None:
            raise StackError(f"{container.name} ended with status {container.status()} at its start", log=container.log)
        time.sleep(2)
    raise StackError(f"{container.name} is not healthy after {seconds:.0f} s: {said}", log=container.log)


def write_rows(mysql: MySQL, seconds: float, container: Container) -> tuple[int, float]:
    """Transactions of a few rows for `seconds`: how many rows, and how long it took."""
    began, rows = time.monotonic(), 0
    with mysql.connect(autocommit=False) as connection, connection.cursor() as cursor:
        while time.monotonic() - began < seconds:
            cursor.executemany(INSERT, [(rows + n, f"item {rows + n}", "12.50") for n in range(BATCH)])
            connection.commit()
            rows += BATCH
            if container.status() is not None:
                raise StackError(f"{container.name} ended with status {container.status()}", log=container.log)
            time.sleep(0.1)
    return rows, time.monotonic() - began


def read_events(kafka: Kafka, rows: int, container: Container, seconds: float = 60) -> int:
    """Reads the topic until every row has come. Raises StackError for one that is missing or comes twice."""
    seen: Counter[int] = Counter()
    deadline = time.monotonic() + seconds
    for record in records(kafka, "trial.trial.items", lambda: len(seen) >= rows or time.monotonic() > deadline):
        seen[json.loads(record)["after"]["id"]] += 1
    missing, twice = rows - len(seen), sum(seen.values()) - len(seen)
    if missing or twice:
        raise StackError(f"of {rows} rows {missing} did not arrive and {twice} came twice", log=container.log)
    return sum(seen.values())


def records(kafka: Kafka, topic: str, done: Callable[[], bool]) -> Iterator[bytes]:
    consumer = Consumer({"bootstrap.servers": kafka.address, "group.id": "trial", "enable.auto.commit": False})
    try:
        partitions = consumer.list_topics(topic, timeout=20).topics[topic].partitions
        consumer.assign([TopicPartition(topic, number, 0) for number in partitions])
        while not done():
            message = consumer.poll(0.5)
            if message is not None and message.error() is None and (value := message.value()):
                yield value
    finally:
        consumer.close()
