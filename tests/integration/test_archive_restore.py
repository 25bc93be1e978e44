"""An empty server becomes what the source was at a point in time, from the archive alone, by mysqlbinlog."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from stack import mariadb, mysql
from stack.database import Database
from streamer.source import facts
from tests.integration.archiving import Archive
from tests.integration.decoding import run, source

Another = Callable[..., Database]
TABLE = """
CREATE TABLE restored.t (id int auto_increment primary key, name varchar(50) character set latin1, amount decimal(9,2),
doc json, at timestamp(6) null, raw blob, kind enum('a', 'b'), price double)
"""
ROW = "INSERT INTO restored.t (name, amount, doc, at, raw, kind, price) VALUES (%s, %s, %s, now(6), %s, %s, %s)"


def restore(server: Database, folder: Path, files: Sequence[str], *options: str) -> None:
    """As docs/operations.md says it."""
    program = mariadb.client if server.flavor == "mariadb" else mysql.client
    reader, client = ("mariadb-binlog", "mariadb") if server.flavor == "mariadb" else ("mysqlbinlog", "mysql")
    login = ["--no-defaults", "--host=127.0.0.1", f"--port={server.port}", "--user=root", "--protocol=tcp"]
    if server.flavor == "mariadb":
        login.append("--skip-ssl")  # the test's server has none
    environment = {**os.environ, "MYSQL_PWD": server.root_password, "TZ": "UTC"}
    read = subprocess.Popen(
        [*program(reader), "--no-defaults", *options, *files], cwd=folder, env=environment, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    done = subprocess.run(
        [*program(client), *login], stdin=read.stdout, env=environment, capture_output=True, text=True
    )
    assert read.stderr is not None
    said = read.stderr.read().decode()
    assert (read.wait(), done.returncode) == (0, 0), said + done.stderr


def content(server: Database) -> Any:
    with server.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT * FROM restored.t ORDER BY id")
        rows = cursor.fetchall()
        cursor.execute("SHOW CREATE TABLE restored.t")
        return rows, cursor.fetchone()


def work(server: Database, rounds: int) -> None:
    with server.connect() as connection, connection.cursor() as cursor:
        for n in range(rounds):
            cursor.execute(ROW, (f"naïve {n}", n, f'{{"n": {n}}}', bytes(range(256)), "ab"[n % 2], n / 3))
            if n % 3 == 2:
                cursor.execute("UPDATE restored.t SET amount = amount + 1 WHERE id % 2")
            if n % 7 == 6:
                cursor.execute("FLUSH BINARY LOGS")


@pytest.fixture
def live(another: Another) -> Database:
    server = another()
    run(server, "CREATE DATABASE restored", TABLE)
    if server.name == "mysql":
        run(server, "SET GLOBAL binlog_transaction_compression = ON")
    work(server, 10)
    return server


def files_up_to(archive: Archive, name: str) -> list[str]:
    names = sorted(path.name for path in archive.folder.iterdir())
    return [one for one in names if one.removesuffix(".part") <= name]


def test_to_a_position_and_to_a_time(live: Database, another: Another, tmp_path: Path) -> None:
    """The accident in its middle: a table without rows."""
    archive = Archive(tmp_path, live, "restored")
    archive.once()
    work(live, 10)
    before, place = content(live), facts(source(live))
    time.sleep(1.1)  # mysqlbinlog stops by whole seconds
    with live.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT DATE_FORMAT(UTC_TIMESTAMP(), '%Y-%m-%d %H:%i:%s')")
        [moment] = cursor.fetchone()
    run(live, "DELETE FROM restored.t", "FLUSH BINARY LOGS", "DROP TABLE restored.t")
    archive.once()

    by_position, by_time = another(), another()
    files = files_up_to(archive, place.file)
    assert len(files) > 2
    restore(by_position, archive.folder, files, f"--stop-position={place.pos}")
    assert content(by_position) == before
    everything = files_up_to(archive, "binlog.999999")
    assert everything[-1].endswith(".part")
    restore(by_time, archive.folder, everything, f"--stop-datetime={moment}")
    assert content(by_time) == before
