"""Pitfalls between a server of each kind and a streamer without Kafka: silence, what no decoder knows, failover."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from stack.database import Database
from tests.integration import failover
from tests.integration.decoding import executed, run
from tests.integration.semi_sync import OPTIONS, held
from tests.integration.streaming import fails, insert, kill_dumps, rows
from tests.integration.test_failover import share_password
from tests.integration.test_sinks import FILES, POSITION
from tests.integration.topic_records import replayed
from tests.integration.without_kafka import NoKafka, in_folder

Another = Callable[..., Database]


def keys(folder: Path, name: str) -> list[int]:
    return [record.key["id"] for record in in_folder(folder / "out", f"{name}.{name}.t")]


def test_a_server_that_is_frozen_is_noticed(no_kafka: NoKafka, another: Another, tmp_path: Path) -> None:
    """Pitfall "Silent stall": nothing for twice the heartbeat."""
    own = another()
    name = f"stall{own.name}"
    streamer = no_kafka(name, FILES + POSITION, mysql=own).started()
    insert(own, name, 0, 3)
    streamer.wait_until_released()
    pid = int((own.data / "mysqld.pid").read_text())
    os.kill(pid, signal.SIGSTOP)
    try:
        streamer.wait_for(lambda status: status["state"] == "waiting", 20)
    finally:
        os.kill(pid, signal.SIGCONT)
    insert(own, name, 3, 3)
    streamer.wait_until_released()
    assert streamer.stop() == 0
    assert keys(tmp_path, name) == list(range(6))


@pytest.mark.lacks("mysql80", "its package has no semi-synchronous plugin")
def test_what_was_streamed_before_its_commit_returned_is_not_missing_there(
    no_kafka: NoKafka, another: Another, server: Database, tmp_path: Path
) -> None:
    """Pitfall "Wrong server": a server that awaits a replica's acknowledgement has sent a transaction before it says
    that it has executed it. Neither a new connection nor a new start takes that for another server."""
    own = another(OPTIONS[server.flavor])
    name = f"awaits{own.name}"
    streamer = no_kafka(name, FILES + POSITION, mysql=own).started()
    insert(own, name, 0, 1)
    released = streamer.wait_until_released()["checkpoint"]["events"]
    with held(own, f"INSERT INTO {name}.t VALUES (1, 1, 'waits')"):
        streamer.wait_for(lambda status: status["checkpoint"]["events"] == released + 1)
        with own.connect() as connection, connection.cursor() as cursor:
            kill_dumps(cursor, "headrace")
        streamer.wait_for(lambda status: status["source"]["reconnects"] >= 1 and status["source"]["connected"])
        assert streamer.stop() == 0
        streamer.started()
    insert(own, name, 2, 1)
    streamer.wait_until_released()
    assert streamer.stop() == 0
    assert keys(tmp_path, name) == [0, 1, 2]


@pytest.mark.lacks("mariadb", "its transactions always have GTIDs")
def test_gtids_that_were_off_while_the_streamer_was_away_are_noticed(
    no_kafka: NoKafka, another: Another, tmp_path: Path
) -> None:
    """By GTID the server would go on in the file behind what it wrote meanwhile, and say nothing of that. Where it
    gives that at all the stream goes by file and position, and by GTID again behind it."""
    own = another()
    name = f"off{own.name}"
    streamer = no_kafka(name, FILES + POSITION, mysql=own).started()
    insert(own, name, 0, 3)
    streamer.wait_until_released()
    assert streamer.stop() == 0
    run(own, "FLUSH BINARY LOGS")
    streamer.started()
    insert(own, name, 3, 1)
    streamer.wait_until_released()
    assert streamer.stop() == 0
    run(own, "SET GLOBAL gtid_mode = ON_PERMISSIVE", "SET GLOBAL gtid_mode = OFF_PERMISSIVE")
    insert(own, name, 4, 1)
    run(own, "SET GLOBAL gtid_mode = ON_PERMISSIVE", "SET GLOBAL gtid_mode = ON")
    insert(own, name, 5, 1)
    log = fails(streamer, "the transaction has no GTID", "SET GLOBAL gtid_mode = ON_PERMISSIVE")
    assert "behind binlog.0000" in log
    assert keys(tmp_path, name) == [0, 1, 2, 3]
    run(own, "SET GLOBAL gtid_mode = ON_PERMISSIVE")
    insert(own, name, 6, 1)
    status = streamer.started().wait_until_released()
    assert status["checkpoint"]["gtid_set"] == ""
    assert streamer.stop() == 0
    run(own, "SET GLOBAL gtid_mode = ON")
    insert(own, name, 7, 1)
    status = streamer.started().wait_until_released()
    assert status["checkpoint"]["gtid_set"] == str(executed(own))
    assert streamer.stop() == 0
    assert keys(tmp_path, name) == list(range(8))


def test_what_stands_before_what_no_decoder_knows_is_delivered(
    no_kafka: NoKafka, server: Database, tmp_path: Path
) -> None:
    """Pitfall "A fatal error in the decoder" (a type it does not know, in some other table): nothing after it is."""
    name = f"unknown{server.name}"
    streamer = no_kafka(name, FILES + POSITION, mysql=server).started()
    insert(server, name, 0, 1500)
    run(server, "CREATE TABLE odd (id float primary key)", "BEGIN", "INSERT INTO t VALUES (9999, 0, 'x')",
        "INSERT INTO odd VALUES (0.1)", "COMMIT", database=name)  # fmt: skip
    insert(server, name, 1500, 100)
    assert streamer.end() == 1
    assert f"{name}.odd" in streamer.log()
    assert "Traceback" not in streamer.log()
    assert keys(tmp_path, name)[:1500] == list(range(1500))
    assert 1500 not in keys(tmp_path, name)
    streamer.file.write_text(streamer.file.read_text().replace('"*.hidden*"', '"*.hidden*", "*.odd"'))
    streamer.started().wait_until_released()
    assert streamer.stop() == 0
    assert sorted(set(keys(tmp_path, name))) == [*range(1600), 9999]


def test_the_stream_goes_on_from_the_replica(
    no_kafka: NoKafka, another: Another, server: Database, tmp_path: Path
) -> None:
    """Pitfall "Wrong server": GTID failover to another server continues and raises the epoch."""
    options = failover.options(server.flavor)
    first, second = another(options, server_id=11), another(options, server_id=12)
    failover.replicate(first, second)
    share_password(first, second)
    name = f"over{first.name}"
    streamer = no_kafka(name, FILES + POSITION, mysql=first)
    also = f"  failover: ['127.0.0.1:{second.port}']\n  failover_seconds: 2\ntables: "
    streamer.file.write_text(streamer.file.read_text().replace("tables: ", also))
    streamer.started()
    insert(first, name, 0, 500)
    streamer.wait_until_released()
    failover.caught_up(second, executed(first))
    first.kill()
    failover.promote(second)
    insert(second, name, 500, 500)
    streamer.wait_for(lambda status: status["source"]["port"] == second.port)
    streamer.mysql = second
    status = streamer.wait_until_released()
    assert streamer.stop() == 0
    assert status["checkpoint"]["epoch"] == 1
    found = sorted(in_folder(tmp_path / "out", f"{name}.{name}.t"), key=lambda record: record.seq)
    assert {record.seq[0] for record in found} == {0, 1}
    assert [record.key["id"] for record in found] == list(range(1000)), "nothing lost, nothing twice"
    assert replayed(found) == rows(second, f"{name}.t")
