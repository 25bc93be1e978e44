"""Pitfall "Reset or restored server": its binlog is begun anew under the GTIDs of before, and places go backwards.

Where what comes would sort before older changes, a new epoch begins; where the binlog is the same one, none does.
"""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stack.database import Database
from tests.integration.decoding import run
from tests.integration.streaming import Streamer, insert, kill_dumps
from tests.integration.test_sinks import FILES, POSITION
from tests.integration.without_kafka import NoKafka, in_folder

Another = Callable[..., Database]
MANY = 500  # rows in a transaction that is longer than all before it


def reset(server: Database) -> None:
    """Empties the binlog, and gives the server back the GTIDs that it had."""
    variable = "gtid_binlog_state" if server.flavor == "mariadb" else "gtid_executed"
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT @@GLOBAL.{variable}")
        [had] = cursor.fetchone()
        cursor.execute("RESET BINARY LOGS AND GTIDS" if server.name == "mysql" else "RESET MASTER")
        cursor.execute(f"SET GLOBAL {variable.replace('executed', 'purged')} = '{had}'")


def place(streamer: Streamer) -> dict[str, Any]:
    found: dict[str, Any] = streamer.wait_until_released()["checkpoint"]
    return found


def test_a_binlog_that_was_begun_anew_and_is_longer_than_what_was_read(
    no_kafka: NoKafka, another: Another, tmp_path: Path
) -> None:
    own = another()
    name = f"anew{own.name}"
    streamer = no_kafka(name, FILES + POSITION, mysql=own)
    reset(own)  # the first file again, with nothing in it
    streamer.started()
    for n in range(0, 20, 2):
        insert(own, name, n, 2)
    before = place(streamer)
    assert streamer.stop() == 0

    reset(own)
    insert(own, name, 20, 1)
    insert(own, name, 21, MANY)
    streamer.started()
    grown = place(streamer)
    assert (grown["epoch"], grown["file"]) == (before["epoch"] + 1, before["file"])
    assert grown["pos"] > before["pos"], "it is longer by now, in the same file"

    reset(own)
    insert(own, name, 20_000, 2 * MANY)  # beyond what was read, so that MySQL's dump is woken
    beyond = place(streamer)
    assert (beyond["epoch"], beyond["file"]) == (grown["epoch"] + 1, grown["file"])

    assert streamer.process is not None
    streamer.process.send_signal(signal.SIGSTOP)
    reset(own)  # a dump of MySQL's waits for ever in the old file; MariaDB's leaves out what is new
    insert(own, name, 10_000, 1)
    run(own, "FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
    insert(own, name, 10_001, 1)  # where both go on, without what stands before it
    streamer.process.send_signal(signal.SIGCONT)
    further = place(streamer)
    assert streamer.status()["state"] == "streaming"
    run(own, "RESET BINARY LOGS AND GTIDS" if own.name == "mysql" else "RESET MASTER")  # and its GTIDs stay away
    assert streamer.end() == 1, "nothing but heartbeats comes, and it hears of it all the same"
    assert "the server no longer has transactions that were streamed" in streamer.log()
    assert (further["epoch"], further["file"]) == (beyond["epoch"] + 1, "binlog.000003")
    found = sorted(in_folder(tmp_path / "out", f"{name}.{name}.t"), key=lambda record: record.seq)
    assert [record.key["id"] for record in found] == [
        *range(21 + MANY), *range(20_000, 20_000 + 2 * MANY), 10_000, 10_001,
    ], "in the order of seq, once"  # fmt: skip
    assert "the server's binlog was begun anew: it gives" in streamer.log()


def test_restarts_and_lost_connections_begin_no_epoch(no_kafka: NoKafka, server: Database, tmp_path: Path) -> None:
    """With an open XA transaction, and, on MariaDB, domains of which each counts for itself."""
    name = f"same{server.name}"
    streamer = no_kafka(name, FILES + POSITION, mysql=server).started()
    insert(server, name, 0, 3)
    run(server, "XA START 'same'", "INSERT INTO t VALUES (100, 1, 'x')", "XA END 'same'", "XA PREPARE 'same'",
        database=name)  # fmt: skip
    insert(server, name, 3, 3)
    in_another_domain(server, name, 6)
    run(server, "FLUSH BINARY LOGS")
    insert(server, name, 7, 3)
    streamer.wait_for(lambda status: status["checkpoint"]["events"] == 10)
    end_dumps(server)
    insert(server, name, 10, 3)
    streamer.wait_for(lambda status: status["checkpoint"]["events"] == 13)
    assert streamer.status()["source"]["reconnects"] >= 1
    streamer.kill()
    in_another_domain(server, name, 13)
    streamer.started()
    insert(server, name, 14, 3)
    streamer.wait_for(lambda status: status["checkpoint"]["events"] == 17)
    run(server, "XA COMMIT 'same'")
    assert place(streamer)["epoch"] == 0
    assert streamer.stop() == 0
    found = sorted(in_folder(tmp_path / "out", f"{name}.{name}.t"), key=lambda record: record.seq)
    assert [record.key["id"] for record in found] == [*range(17), 100]
    assert "coordinates begin anew" not in streamer.log()


def end_dumps(server: Database) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        kill_dumps(cursor, "headrace")


def in_another_domain(server: Database, name: str, number: int) -> None:
    domain = "SET gtid_domain_id = 9" if server.flavor == "mariadb" else "DO 0"
    run(server, domain, f"INSERT INTO t VALUES ({number}, 1, 'x')", database=name)
