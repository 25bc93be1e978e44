"""A MySQL server with gtid_mode=OFF, as MySQL 8.0 and 9.7 are by default: the stream goes by file and position."""

from __future__ import annotations

import json
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from contract.checkpoint import Checkpoint
from stack.database import Database
from streamer import source
from tests.integration.conftest import Another
from tests.integration.decoding import purge, run
from tests.integration.decoding import source as read_from
from tests.integration.semi_sync import OPTIONS, held
from tests.integration.streaming import Make, Streamer, fails, insert, kill_dumps, rows
from tests.integration.test_failover import share_password
from tests.integration.test_sinks import FILES, POSITION
from tests.integration.topic_records import once, records, replayed
from tests.integration.without_kafka import NoKafka, in_folder

OFF = ["gtid_mode=OFF", "enforce_gtid_consistency=OFF"]
pytestmark = pytest.mark.lacks("mariadb", "its transactions always have GTIDs")


def keys(folder: Path, name: str) -> list[int]:
    return [record.key["id"] for record in in_folder(folder / "out", f"{name}.{name}.t")]


def switch(own: Database, *modes: str) -> None:
    run(own, "SET GLOBAL enforce_gtid_consistency = ON", *[f"SET GLOBAL gtid_mode = {mode}" for mode in modes])


class Load(threading.Thread):
    """Transactions of three rows each, from an id on, until it is stopped."""

    def __init__(self, own: Database, db: str) -> None:
        super().__init__(daemon=True)
        self._own, self._db, self._going = own, db, True

    def run(self) -> None:
        number = 1000
        with self._own.connect(database=self._db, autocommit=False) as connection, connection.cursor() as cursor:
            while self._going:
                for statement in ("INSERT INTO t VALUES (%s, 1, 'x')", "UPDATE t SET v = 2 WHERE id = %s"):
                    cursor.execute(statement, (number,))
                connection.commit()
                number += 1
                time.sleep(0.005)

    def end(self) -> None:
        self._going = False
        self.join()


def checkpoint(streamer: Streamer) -> Checkpoint:
    values = [record.value for record in records(streamer.kafka, f"{streamer.name}.commit-log") if record.value]
    found = Checkpoint.greatest(Checkpoint.read(json.dumps(value)) for value in values)
    assert found is not None
    return found


@pytest.mark.soak_on("mysql80")
@pytest.mark.parametrize("delivery", ["exactly_once", "at_least_once"])
def test_nothing_is_lost_by_kills_and_lost_connections(
    make: Make, another: Another, server: Database, delivery: str
) -> None:
    own = another(OFF)
    name = f"nogtid{own.name}{delivery[:2]}"
    streamer = make(name, mysql=own, delivery=delivery, start="earliest")
    insert(own, name, 0, 5)
    checked = streamer.command("check")
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "gtid_mode is OFF, not ON: the stream goes by file and position" in checked.stdout
    assert "SET PERSIST gtid_mode = ON;" in checked.stdout
    streamer.started().wait_until_released()
    load = Load(own, name)
    load.start()
    for way in ("kill", "connection", "kill", "rotation"):
        time.sleep(0.7)
        if way == "kill":
            streamer.kill()
            streamer.started()
        elif way == "connection":
            with own.connect() as root, root.cursor() as cursor:
                kill_dumps(cursor, "headrace")
        else:
            run(own, "FLUSH BINARY LOGS")
    load.end()
    insert(own, name, 5, 1)  # in the file that was begun last, however quick the end was
    status = streamer.wait_until_released()
    assert status["checkpoint"]["gtid_set"] == ""
    assert streamer.stop() == 0
    kept = checkpoint(streamer)
    assert (kept.by_place, kept.gtid_set, kept.epoch) == (True, "", 0)
    assert (kept.file, kept.pos) == list(source.files(read_from(own)).items())[-1]
    found = records(streamer.kafka, f"{name}.{name}.t")
    if delivery == "exactly_once":
        assert len({record.seq for record in found}) == len(found)
    else:
        found = once(found)
    assert replayed(found) == rows(own, f"{name}.t")
    told = found[0].value["source"]
    assert told["gtid"] is None
    assert {record.value["source"]["file"] for record in found} > {told["file"]}


def test_what_a_place_cannot_tell_is_refused(
    no_kafka: NoKafka, another: Another, server: Database, tmp_path: Path
) -> None:
    own, other = another(OFF, server_id=11), another(OFF, server_id=12)
    share_password(own, other)
    name = f"placed{own.name}"
    streamer = no_kafka(name, FILES + POSITION, mysql=own).started()
    insert(own, name, 0, 3)
    streamer.wait_until_released()
    assert streamer.stop() == 0
    text = streamer.file.read_text()
    streamer.file.write_text(text.replace(f"port: {own.port}", f"port: {other.port}"))
    fails(streamer, "without GTIDs on both nothing tells where in its binlog the stream would go on")
    streamer.file.write_text(text)

    run(own, "FLUSH BINARY LOGS")
    insert(own, name, 3, 1)
    purge(own, list(source.files(read_from(own)))[-1])
    fails(streamer, "purged transactions that were not streamed yet")
    reset = "RESET BINARY LOGS AND GTIDS" if own.name == "mysql" else "RESET MASTER"
    run(own, reset)
    insert(own, name, 4, 1)
    fails(streamer, "no longer has transactions that were streamed")
    for number in range(5, 30):  # the new file has a transaction where the old one ended, or behind it
        insert(own, name, number, 1)
    log = fails(streamer, "Start a pipeline of a new name")
    assert keys(tmp_path, name) == [0, 1, 2]
    assert "binlog.000001 is another file than the one that was read" in log
    switch(own, "OFF_PERMISSIVE", "ON_PERMISSIVE", "ON")
    log = fails(streamer, "Start a pipeline of a new name")
    assert "binlog.000001 is another file than the one that was read" in log
    assert keys(tmp_path, name) == [0, 1, 2]


@pytest.mark.soak_on("mysql80")
def test_a_reset_server_that_lost_its_gtids_is_refused(
    no_kafka: NoKafka, another: Another, server: Database, tmp_path: Path
) -> None:
    own = another()
    name = f"reset{own.name}"
    streamer = no_kafka(name, FILES + POSITION, mysql=own).started()
    insert(own, name, 0, 3)
    streamer.wait_until_released()
    assert streamer.stop() == 0
    run(own, "RESET BINARY LOGS AND GTIDS" if own.name == "mysql" else "RESET MASTER")
    switch(own, "ON_PERMISSIVE", "OFF_PERMISSIVE", "OFF")
    for number in range(5, 30):
        insert(own, name, number, 1)
    log = fails(streamer, "Start a pipeline of a new name")
    assert "the server no longer has" in log
    assert keys(tmp_path, name) == [0, 1, 2]


def test_a_stream_that_has_read_all_needs_no_older_file(
    no_kafka: NoKafka, another: Another, server: Database, tmp_path: Path
) -> None:
    own = another(OFF)
    name = f"idle{own.name}"
    streamer = no_kafka(name, FILES + POSITION, mysql=own).started()
    insert(own, name, 0, 2)
    streamer.wait_until_released()
    run(own, "FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
    last = list(source.files(read_from(own)))[-1]
    streamer.wait_for(lambda status: status["checkpoint"]["file"] == last)
    purge(own, last)
    assert streamer.stop() == 0
    insert(own, name, 2, 1)
    streamer.started().wait_until_released()
    assert streamer.stop() == 0
    assert keys(tmp_path, name) == [0, 1, 2]


@pytest.mark.soak_on("mysql80")
def test_it_starts_where_the_file_says(no_kafka: NoKafka, another: Another, server: Database, tmp_path: Path) -> None:
    own = another(OFF)
    name = f"begins{own.name}"
    streamer = no_kafka(name, FILES + POSITION, mysql=own)
    insert(own, name, 0, 2)
    [*_, (file, end)] = source.files(read_from(own)).items()
    time.sleep(1.1)
    before = datetime.now(UTC)
    insert(own, name, 2, 1)

    def begun(start: str, number: int) -> list[int]:
        folder = f"out{number}"
        outputs = FILES.replace("/out", f"/{folder}") + POSITION.replace("position", f"position{number}")
        one = no_kafka(name, outputs, mysql=own, start=f'"{start}"').started()
        insert(own, name, 10 + number, 1)
        one.wait_until_released()
        assert one.stop() == 0
        return [record.key["id"] for record in in_folder(tmp_path / folder, f"{name}.{name}.t")]

    assert begun(f"{file}:{end}", 0) == [2, 10]
    assert begun(before.isoformat(), 1) == [2, 10, 11]
    assert begun("latest", 2) == [12]
    fails(no_kafka(name, FILES + POSITION, mysql=own, start=f'"{file}:{end - 1}"'), "in the middle of a transaction")
    gtid = '"3e11fa47-71ca-11e1-9e33-c80aa9429562:1-5"'
    fails(no_kafka(name, FILES + POSITION, mysql=own, start=gtid), "the server has no GTIDs")
    seeking = streamer.command("seek", "--to", "earliest")
    assert seeking.returncode == 1


@pytest.mark.soak_on("mysql80")
def test_open_xa_transactions(no_kafka: NoKafka, another: Another, server: Database, tmp_path: Path) -> None:
    own = another(OFF)
    name = f"xa{own.name}"
    streamer = no_kafka(name, FILES + POSITION, mysql=own).started()
    insert(own, name, 0, 1)
    run(own, "XA START 'a'", "INSERT INTO t VALUES (1, 1, 'xa')", "XA END 'a'", "XA PREPARE 'a'", database=name)
    insert(own, name, 2, 1)
    streamer.wait_until_released()
    streamer.kill()
    streamer.started()
    insert(own, name, 3, 1)
    streamer.wait_until_released()
    run(own, "XA COMMIT 'a'")
    streamer.wait_until_released()
    assert streamer.stop() == 0
    assert sorted(keys(tmp_path, name)) == [0, 1, 2, 3]


@pytest.mark.soak_on("mysql80")
def test_a_oneshot_run_ends_and_a_move_goes_back(
    no_kafka: NoKafka, another: Another, server: Database, tmp_path: Path
) -> None:
    own = another(OFF)
    name = f"once{own.name}"
    streamer = no_kafka(name, FILES + POSITION, mysql=own, start="earliest")
    insert(own, name, 0, 2)
    run(own, "FLUSH BINARY LOGS")
    streamer.start("--oneshot")
    assert streamer.end() == 0, streamer.log()
    assert keys(tmp_path, name) == [0, 1]
    moved: dict[str, Any] = json.loads(streamer.command("seek", "--to", "earliest", "--json").stdout)
    assert (moved["epoch"], moved["gtid_set"], moved["pos"]) == (1, "", 4)
    insert(own, name, 2, 1)
    streamer.start("--oneshot")
    assert streamer.end() == 0, streamer.log()
    assert keys(tmp_path, name) == [0, 1, 0, 1, 2]


@pytest.mark.soak_on("mysql80")
def test_gtids_are_switched_off_and_on_while_it_streams(
    no_kafka: NoKafka, another: Another, server: Database, tmp_path: Path
) -> None:
    own = another()
    name = f"switched{own.name}"
    streamer = no_kafka(name, FILES + POSITION, mysql=own).started()
    insert(own, name, 0, 2)
    assert streamer.wait_until_released()["checkpoint"]["gtid_set"]
    run(own, "SET GLOBAL gtid_mode = ON_PERMISSIVE", "SET GLOBAL gtid_mode = OFF_PERMISSIVE")
    insert(own, name, 2, 2)
    assert streamer.wait_until_released()["checkpoint"]["gtid_set"] == ""
    run(own, "SET GLOBAL gtid_mode = ON_PERMISSIVE", "SET GLOBAL gtid_mode = ON")
    insert(own, name, 4, 2)
    streamer.wait_for(lambda status: status["checkpoint"]["events"] == 6)
    assert streamer.stop() == 0
    insert(own, name, 6, 2)
    assert streamer.started().wait_until_released()["checkpoint"]["epoch"] == 0
    assert streamer.status()["checkpoint"]["gtid_set"] == str(source.facts(read_from(own)).executed)
    assert streamer.stop() == 0
    assert keys(tmp_path, name) == list(range(8))


@pytest.mark.lacks("mysql80", "its package has no semi-synchronous plugin")
def test_what_waits_for_a_replica_when_the_stream_goes_on_by_gtids_comes_once(
    no_kafka: NoKafka, another: Another, server: Database, tmp_path: Path
) -> None:
    own = another([*OFF, *OPTIONS["mysql"]])
    name = f"held{own.name}"
    streamer = no_kafka(name, FILES + POSITION, mysql=own).started()
    insert(own, name, 0, 1)
    streamer.wait_until_released()
    switch(own, "OFF_PERMISSIVE", "ON_PERMISSIVE", "ON")
    insert(own, name, 1, 1)
    with held(own, f"INSERT INTO {name}.t VALUES (2, 1, 'x')"):
        streamer.wait_for(lambda status: status["checkpoint"]["events"] == 3)
        assert streamer.stop() == 0
        assert keys(tmp_path, name) == [0, 1, 2]
        streamer.started().wait_for(lambda status: status["checkpoint"]["gtid_set"])
    insert(own, name, 3, 1)
    streamer.wait_until_released()
    assert streamer.stop() == 0
    assert keys(tmp_path, name) == [0, 1, 2, 3]
