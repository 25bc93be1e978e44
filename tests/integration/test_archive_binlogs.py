"""Archived binlog files are the server's own, byte by byte, whatever happens to the archive or the server meanwhile."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stack.database import Database
from tests.integration.archiving import Archive, in_folder, on_server
from tests.integration.decoding import purge, run

Another = Callable[..., Database]
TABLE = "CREATE TABLE archived.t (id int auto_increment primary key, v longtext)"


@pytest.fixture
def own(another: Another) -> Database:
    """A server with the empty table `archived.t` and one binlog file."""
    server = another()
    run(server, "CREATE DATABASE archived", TABLE)
    return server


@pytest.fixture
def archive(own: Database, tmp_path: Path) -> Iterator[Archive]:
    made = Archive(tmp_path, own, "archived")
    yield made
    made.close()


def insert(server: Database, *values: str) -> None:
    with server.connect(database="archived") as connection, connection.cursor() as cursor:
        for value in values:
            cursor.execute("INSERT INTO t (v) VALUES (%s)", (value,))


class Load(threading.Thread):
    """Small and large transactions, and new binlog files, until it is stopped."""

    def __init__(self, server: Database) -> None:
        super().__init__(daemon=True)
        self.server = server
        self.ended = threading.Event()
        self.start()

    def run(self) -> None:
        chosen = random.Random(5)
        with self.server.connect(database="archived") as connection, connection.cursor() as cursor:
            while not self.ended.wait(0.001):
                size = chosen.choice((10, 10, 10, 1000, 100_000))
                cursor.execute("INSERT INTO t (v) VALUES (%s)", ("x" * size,))
                if chosen.random() < 0.01:
                    cursor.execute("FLUSH BINARY LOGS")

    def stop(self) -> None:
        self.ended.set()
        self.join(10)


@pytest.mark.soak_on("mysql80")
def test_files_are_the_servers_own_after_kills_at_any_moment(own: Database, archive: Archive) -> None:
    load, chosen = Load(own), random.Random(6)
    for _ in range(4):
        archive.start()
        archive.wait_for(archive.folder.exists)
        time.sleep(chosen.uniform(0.2, 1.2))
        archive.kill()
    archive.start()
    run(own, f"KILL {_dump(own)}")  # the connection is made again
    load.stop()
    time.sleep(2)  # MariaDB notes in the new file when the engine is done with the one before
    archive.wait_until_level()
    assert archive.stop() == 0
    found = in_folder(archive.folder)
    assert found == on_server(own)
    assert len(found) > 3


def _dump(server: Database) -> int:
    """The server's number of the connection that reads the binlog."""
    until = time.monotonic() + 10
    while time.monotonic() < until:
        with server.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT id FROM information_schema.processlist WHERE command LIKE 'Binlog Dump%'")
            if found := cursor.fetchall():
                return int(found[-1][0])
        time.sleep(0.1)
    raise AssertionError("nobody reads the binlog")


def test_files_of_every_kind(own: Database, archive: Archive) -> None:
    """Without checksums, with compressed transactions, with an event of 20 MB; and nothing is done twice."""
    run(own, "SET GLOBAL max_allowed_packet = 67108864")
    insert(own, "with a checksum")
    archive.once()
    run(own, "SET GLOBAL binlog_checksum = NONE")
    insert(own, "without one")
    run(own, "FLUSH BINARY LOGS")
    archive.once()
    run(own, "SET GLOBAL binlog_checksum = CRC32")
    if own.flavor == "mariadb":
        run(own, "SET GLOBAL log_bin_compress = ON")
    elif own.name == "mysql":
        run(own, "SET GLOBAL binlog_transaction_compression = ON")
    insert(own, "compressed " * 1000, "x" * 20_000_000)
    archive.once()
    archive.once()
    assert in_folder(archive.folder) == on_server(own)


def test_the_open_file_is_cut_anywhere(own: Database, archive: Archive) -> None:
    insert(own, "a", "b", "c")
    archive.once()
    [part] = archive.folder.iterdir()
    whole = part.read_bytes()
    insert(own, "d")
    for length in (0, 3, 4, 30, len(whole) - 1):
        part.write_bytes(whole[:length] + bytes(10))  # a power failure may leave zeros
        archive.once()
        assert in_folder(archive.folder) == on_server(own)


def test_a_server_that_was_reset_is_refused(own: Database, archive: Archive) -> None:
    insert(own, "a", "b", "c")
    archive.once()
    before = in_folder(archive.folder)
    reset = "RESET MASTER" if own.name != "mysql" else "RESET BINARY LOGS AND GTIDS"
    run(own, reset)
    assert archive.refused().kind == "archive_differs"
    time.sleep(1)  # a server's files begin in different seconds
    run(own, reset)
    insert(own, "a", "b", "c", "d", "e", "f", "g")
    refused = archive.refused()
    assert refused.kind == "archive_differs"
    assert str(archive.folder) in str(refused)
    assert in_folder(archive.folder) == before
    archive.folder.rename(archive.root / "before")
    archive.once()
    assert in_folder(archive.folder) == on_server(own)


def test_a_gap_names_the_files_that_are_gone(own: Database, archive: Archive) -> None:
    archive.once()
    run(own, *["FLUSH BINARY LOGS"] * 4)
    purge(own, "binlog.000004")
    refused = archive.refused()
    assert refused.kind == "purged"
    assert "binlog.000001 to binlog.000003" in str(refused)
    run(own, *["FLUSH BINARY LOGS"] * 2)
    (archive.folder / "binlog.000001.part").rename(archive.folder / "binlog.000003")
    archive.once()  # the last one of the archive is purged, the next is not


def test_one_reader_an_id_and_one_writer_a_folder(own: Database, archive: Archive, tmp_path: Path) -> None:
    if own.flavor == "mariadb":
        run(own, "GRANT REPLICATION MASTER ADMIN ON *.* TO headrace")
    archive.start()
    archive.wait_until_level()
    done = archive.command("--log", "console")
    assert (done.returncode, "archive_in_use" in done.stderr, "Traceback" in done.stderr) == (1, True, False)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    refused = Archive(elsewhere, own, "archived").refused()
    assert refused.kind == "server_id_in_use"
    assert "archive.server_id" in str(refused)
    archive.wait_for(lambda: archive.said()["state"] == "archiving")
    found = archive.status()
    assert found["runs"]
    assert found["behind_seconds"] == 0
    assert archive.stop() == 0
    assert archive.status()["state"] == "stopped"
