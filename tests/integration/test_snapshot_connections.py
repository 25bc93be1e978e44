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
LOCKED = "SELECT coalesce(max(trx_rows_locked + trx_tables_locked), 0) FROM information_schema.innodb_trx"
LOCKING = """SHOW GLOBAL STATUS WHERE variable_name IN ('Com_lock_tables', 'Com_lock_instance', 'Com_flush',
'Com_backup_lock', 'Innodb_row_lock_waits')"""


@contextmanager
def looked_at(server: Database, chunk: str) -> Iterator[list[tuple[int, int, int]]]:
    """In each of many looks: how many chunks are being read, how many more connections the user has than before, and
    what the transaction with the most locks has of them."""
    looks: list[tuple[int, int, int]] = []

    def look(stop: threading.Event) -> None:
        while not stop.wait(0.002):
            here = {id: sql for id, sql in listed(cursor).items() if id not in before}
            looks.append((sum(chunk in sql for sql in here.values()), len(here), asked(LOCKED)[0][0]))

    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:

        def asked(sql: str) -> Any:
            cursor.execute(sql)
            return cursor.fetchall()

        before, locks = listed(cursor), asked(LOCKING)
        with beside(look):
            yield looks
        assert asked(LOCKING) == locks, "nothing was locked, and nothing waited for a lock"


def listed(cursor: Any) -> dict[int, str]:
    """What the connections of the user run."""
    cursor.execute(f"SELECT id, coalesce(info, '') FROM information_schema.processlist WHERE user = '{USER}'")
    return dict(cursor.fetchall())


@pytest.mark.soak_on("mysql80", "mariadb")
@pytest.mark.parametrize("parallelism", [1, 2])
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
    with looked_at(server, READ) as looks:
        manifest = snapshots.run()
    assert manifest.counts == {f"counted.{name}": ROWS for name in TABLES}
    reads, connections, locked = map(max, zip(*looks, strict=True))
    assert (reads, locked) == (parallelism, 0)
    # One asks, one walks along the keys; each reader's last one is in the list for a moment behind its end.
    assert connections <= 2 + 2 * parallelism
    kept = Kept.open(snapshots.lake, streamed(server))
    with looked_at(server, PROVEN) as looks, Source(asked) as source:
        answer = Reading(spark, asked, source, 0, kept, lambda line: None).ask("counted", "t")
    assert answer.total.rows == ROWS
    assert tuple(map(max, zip(*looks, strict=True))) == (parallelism, 1 + parallelism, 0)
