"""How many connections a snapshot has on the server at the same time: `snapshot.parallelism` readers, and two more. A
check has one more. And that neither locks anything."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark.proof.kept import Kept
from spark.proof.reading import Reading
from spark.source.source import Source
from stack.database import USER, Database
from tests.integration.decoding import run
from tests.integration.staging import Snapshots, pipeline, streamed
from tests.integration.test_lake_servers import beside

ROWS = 160
SLOW = "sha2(repeat(lpad(id, 10, '0'), 100000), 256)"  # each time that it is read: so reads go on beside each other
TABLES = ("t", "u")
# Of a chunk, by its SQL: that of a snapshot, and that of a check.
READ, PROVEN = "row_key", "sha2("
# Of no thread are the server's own. What it answers is of as long ago as it was asked without a rest of a tenth second.
LOCKED = """SELECT coalesce(max(trx_rows_locked + trx_tables_locked), 0) FROM information_schema.innodb_trx
WHERE trx_mysql_thread_id > 0"""
REST = 0.15  # seconds
LOCKING = """SHOW GLOBAL STATUS WHERE variable_name IN ('Com_lock_tables', 'Com_lock_instance', 'Com_flush',
'Com_backup_lock', 'Innodb_row_lock_waits')"""


@contextmanager
def looked_at(server: Database, chunk: str) -> Iterator[list[tuple[int, int]]]:
    """In each of many looks: how many chunks are being read, and how many more connections the user has than before."""
    looks: list[tuple[int, int]] = []

    def look(stop: threading.Event) -> None:
        while not stop.wait(0.002):
            here = {id: sql for id, sql in listed(cursor).items() if id not in before}
            looks.append((sum(chunk in sql for sql in here.values()), len(here)))

    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        before = listed(cursor)
        with beside(look):
            yield looks


@contextmanager
def without_locks(server: Database) -> Iterator[None]:
    """Nothing is locked, nor waited for, while the block runs."""
    locked: list[int] = []

    def look(stop: threading.Event) -> None:
        while not stop.wait(REST):
            cursor.execute(LOCKED)
            locked.append(cursor.fetchone()[0])

    def counted() -> Any:
        cursor.execute(LOCKING)
        return cursor.fetchall()

    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        before = counted()
        with beside(look):
            yield
        assert (max(locked), counted()) == (0, before)


def listed(cursor: Any) -> dict[int, str]:
    """What the connections of the user run."""
    cursor.execute(f"SELECT id, coalesce(info, '') FROM information_schema.processlist WHERE user = '{USER}'")
    return dict(cursor.fetchall())


@pytest.mark.soak_on("mysql80", "mariadb")
@pytest.mark.parametrize("parallelism", [pytest.param(1, marks=pytest.mark.soak), 2])
def test_a_snapshot_and_a_check_have_as_many_readers_as_the_file_says(
    spark: SparkSession, server: Database, tmp_path: Path, parallelism: int
) -> None:
    """Of one table at a time. The session of the tests has two cores, so nothing else holds a single reader back."""
    rows = ", ".join(f"({n})" for n in range(ROWS))
    run(server, "DROP DATABASE IF EXISTS counted", "CREATE DATABASE counted")
    for name in TABLES:
        made = f"CREATE TABLE {name} (id int PRIMARY KEY, slow char(64) AS ({SLOW}) VIRTUAL)"
        run(server, made, f"INSERT INTO {name} (id) VALUES {rows}", database="counted")
    asked = pipeline(server, tmp_path, "counted.*", parallelism=parallelism)
    snapshots = Snapshots(spark, server, asked)
    with without_locks(server), looked_at(server, READ) as looks:
        manifest = snapshots.run()
    assert manifest.counts == {f"counted.{name}": ROWS for name in TABLES}
    reads, connections = map(max, zip(*looks, strict=True))
    assert reads == parallelism
    # One asks, one walks along the keys; each reader's last one is in the list for a moment behind its end.
    assert connections <= 2 + 2 * parallelism
    kept = Kept.open(snapshots.lake, streamed(server))
    with without_locks(server), looked_at(server, PROVEN) as looks, Source(asked) as source:
        answer = Reading(spark, asked, source, 0, kept, lambda line: None).ask("counted", "t")
    assert answer.total.rows == ROWS
    assert tuple(map(max, zip(*looks, strict=True))) == (parallelism, 1 + parallelism)
