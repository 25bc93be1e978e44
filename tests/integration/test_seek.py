"""`headrace seek`: back sends again in a new epoch, forward loses only what was agreed to, and nothing moves a pipeline
that runs."""

from __future__ import annotations

import json
import os
import threading
import time
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from contract.checkpoint import Checkpoint
from contract.pipeline import Pipeline, load
from stack.database import Database
from stack.kafka import Kafka
from stack.mysql import MySQL
from stack.ports import free_port
from streamer.errors import HeadraceError
from streamer.run import Runner
from streamer.seek import command
from tests.integration.decoding import executed
from tests.integration.streaming import Make, Streamer, execute, insert
from tests.integration.topic_records import records
from tests.integration.without_kafka import NoKafka, in_folder


def last(kafka: Kafka, name: str) -> Checkpoint:
    found = [Checkpoint.model_validate(record.value) for record in records(kafka, f"{name}.commit-log")]
    greatest = Checkpoint.greatest(found)
    assert greatest is not None
    return greatest


def pipeline(streamer: Streamer) -> Pipeline:
    with mock.patch.dict(os.environ, TEST_PASSWORD=streamer.password):
        return load(streamer.file)


def seek(streamer: Streamer, to: str, **options: bool) -> Any:
    """In this process, which takes a second less than the command."""
    return command.seek(pipeline(streamer), to, **options).facts()


def refused(streamer: Streamer, kind: str, to: str, **options: bool) -> None:
    with pytest.raises(HeadraceError) as caught:
        command.seek(pipeline(streamer), to, **options)
    assert caught.value.kind == kind


def told(streamer: Streamer, *options: str) -> Any:
    """By the command itself."""
    done = streamer.command("seek", "--json", *options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def refused_by_command(streamer: Streamer, kind: str, to: str) -> None:
    done = streamer.command("seek", "--to", to)
    assert done.returncode == 1, done.stdout
    assert f"error ({kind})" in done.stderr
    assert "Traceback" not in done.stderr


def once(streamer: Streamer) -> None:
    """As `headrace run --oneshot`."""
    Runner(pipeline(streamer), threading.Event(), oneshot=True).run()


def sent(kafka: Kafka, name: str) -> list[tuple[int, int]]:
    """Epoch and key of each record, in the order of their keys."""
    return sorted((record.seq[0], record.key["id"]) for record in records(kafka, f"{name}.{name}.t"))


@pytest.mark.parametrize(
    ("delivery", "kind"), [("exactly_once", "mysql"), pytest.param("at_least_once", "mariadb", marks=pytest.mark.soak)]
)
def test_back_and_forward(make: Make, request: pytest.FixtureRequest, kafka: Kafka, delivery: str, kind: str) -> None:
    server: Database = request.getfixturevalue(kind)
    name = f"seek{kind}"
    streamer = make(name, server, delivery=delivery)
    once(streamer)
    begin = str(executed(server))
    insert(server, name, 1, 3)
    time.sleep(1.1)  # the server's clock tells the two apart by seconds
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT DATE_FORMAT(UTC_TIMESTAMP(), '%Y-%m-%dT%H:%i:%sZ')")
        [moment] = cursor.fetchone()
    insert(server, name, 4, 2)
    once(streamer)
    before = last(kafka, name)
    assert sent(kafka, name) == [(0, n) for n in range(1, 6)]

    assert told(streamer, "--to", begin, "--dry-run")["moves"]
    assert last(kafka, name) == before, "it was only asked"
    assert seek(streamer, begin)["epoch"] == 1
    [first] = [record for record in records(kafka, f"{name}.{name}.t") if record.key["id"] == 1]
    assert last(kafka, name).ts_ms == first.value["source"]["ts_ms"], "since then something waits"
    once(streamer)
    assert sent(kafka, name)[5:] == [(1, n) for n in range(1, 6)]
    gap = last(kafka, name).since(name, "t")
    assert gap is not None
    assert gap > before.place, "the lake's table wants a snapshot behind what came again"

    seek(streamer, moment)
    once(streamer)
    assert sent(kafka, name)[10:] == [(2, 4), (2, 5)]
    assert not seek(streamer, "latest")["moves"]

    insert(server, name, 6, 2)
    refused(streamer, "skips_changes", "latest")
    assert told(streamer, "--to", "latest", "--skip-changes")["skipped"]
    insert(server, name, 8, 1)
    once(streamer)
    assert sent(kafka, name)[12:] == [(3, 8)]
    assert last(kafka, name).since(name, "t") is not None


def test_what_runs_and_what_there_is_not_is_not_moved(make: Make, mysql: Database, kafka: Kafka) -> None:
    streamer = make("seeknot", mysql)
    refused_by_command(streamer, "seek", "latest")  # no checkpoint yet
    streamer.started()
    begin = str(executed(mysql))
    insert(mysql, "seeknot", 1, 1)
    streamer.wait_until_released()
    refused(streamer, "still_running", "latest")
    assert seek(streamer, begin, dry_run=True)["moves"], "what it would mean is told of one that runs, too"
    assert streamer.stop() == 0
    stood = last(kafka, "seeknot")
    uuid = stood.server_uuid
    refused(streamer, "seek", f"{uuid}:1-99999999", skip_changes=True)
    refused(streamer, "seek", "binlog.999999:4", skip_changes=True)
    refused(streamer, "seek", "some day")
    assert last(kafka, "seeknot") == stood
    once(streamer)


@pytest.mark.parametrize("kind", ["mysql", "mariadb"])
def test_an_idle_streamer_elsewhere_is_noticed_without_transactions(
    make: Make, request: pytest.FixtureRequest, kafka: Kafka, kind: str
) -> None:
    """It writes nothing that would tell of it, and is not shut out by who writes."""
    server: Database = request.getfixturevalue(kind)
    name = f"seekidle{kind}"
    streamer = make(name, server, delivery="at_least_once").started()
    begin = str(executed(server))
    insert(server, name, 1, 1)
    streamer.wait_until_released()
    stood = last(kafka, name)
    here = streamer.file.read_text()
    streamer.file.write_text(here.replace(str(streamer.values["http"]), str(free_port())))  # as on another machine
    refused(streamer, "still_running", begin)
    assert last(kafka, name) == stood
    assert streamer.stop() == 0
    assert seek(streamer, begin)["epoch"] == 1, "one that has just ended is waited for"


def test_what_is_purged_is_not_gone_back_to(make: Make, mysql_server: Any, kafka: Kafka) -> None:
    own = mysql_server()
    streamer = make("seekpurged", own)
    once(streamer)
    begin = str(executed(own))
    insert(own, "seekpurged", 1, 1)
    execute(own, "FLUSH BINARY LOGS")
    once(streamer)
    with own.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SHOW BINARY LOGS")
        newest = cursor.fetchall()[-1][0]
        cursor.execute(f"PURGE BINARY LOGS TO '{newest}'")
    refused(streamer, "purged", begin)


def test_without_kafka_too_a_run_ends_and_a_pipeline_is_moved(no_kafka: NoKafka, mysql: MySQL, tmp_path: Path) -> None:
    outputs = "sinks: [{type: files, path: {folder}/out}]\ncheckpoints: {type: file, path: {folder}/position}\n"
    streamer = no_kafka("seekfiles", outputs)

    def sent() -> list[tuple[int, int]]:
        found = in_folder(tmp_path / "out", "seekfiles.seekfiles.t")
        return [(record.seq[0], record.key["id"]) for record in found]

    once(streamer)
    begin = str(executed(mysql))
    insert(mysql, "seekfiles", 1, 3)
    once(streamer)
    assert sent() == [(0, 1), (0, 2), (0, 3)]
    assert seek(streamer, begin)["epoch"] == 1
    once(streamer)
    assert sent()[3:] == [(1, 1), (1, 2), (1, 3)]
    insert(mysql, "seekfiles", 4, 1)
    refused(streamer, "skips_changes", "latest")
    assert seek(streamer, "latest", skip_changes=True)["skipped"]
    once(streamer)
    assert len(sent()) == 6
    streamer.started()
    refused(streamer, "still_running", begin)
