"""Streamers whose pipeline file names no Kafka, and records read back from JSON lines."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from stack.database import Database
from stack.mysql import MySQL
from tests.integration.streaming import Streamer, execute
from tests.integration.topic_records import Record
from tests.streamer.sinks import reading_lines

NOWHERE: Any = SimpleNamespace(address="127.0.0.1:9")
KAFKA_KEYS = re.compile(r"^(kafka|lake|  delivery):.*\n", re.MULTILINE)
NoKafka = Callable[..., Streamer]


@pytest.fixture
def no_kafka(tmp_path: Path, mysql: MySQL) -> Iterator[NoKafka]:
    """As `make`; `outputs`: the sections sinks and checkpoints. `{folder}` in them is a folder of the test."""
    made: list[Streamer] = []

    def one(name: str, outputs: str, mysql: Database = mysql, **more: Any) -> Streamer:
        execute(
            mysql,
            f"CREATE DATABASE IF NOT EXISTS {name}",
            f"CREATE TABLE IF NOT EXISTS {name}.t (id BIGINT PRIMARY KEY, v INT, name VARCHAR(40))",
        )
        streamer = Streamer(tmp_path, mysql, NOWHERE, name, **more)
        text = KAFKA_KEYS.sub("", streamer.file.read_text())
        streamer.file.write_text(text + outputs.replace("{folder}", str(tmp_path)))
        made.append(streamer)
        return streamer

    yield one
    for streamer in made:
        streamer.close()


def in_folder(root: Path, topic: str) -> list[Record]:
    """The records of a topic in closed files, in the order of the files' names."""
    return recorded(reading_lines.of_folder(root), topic)


def recorded(stored: list[reading_lines.Stored], topic: str) -> list[Record]:
    return [
        Record(0, key and json.loads(key), value and json.loads(value)) for name, key, value in stored if name == topic
    ]
