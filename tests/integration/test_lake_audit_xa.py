"""Audit: snapshot, check and repair while an XA transaction is prepared, and behind its end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from contract.pipeline import load
from spark.compaction.compaction import compact
from spark.jobs.backfill import backfill
from spark.jobs.snapshot import snapshot
from spark.jobs.verify import verify
from stack.database import Database
from stack.kafka import Kafka
from tests.integration.decoding import run
from tests.integration.streaming import Streamer

pytestmark = pytest.mark.usefixtures("without_expectations")


@pytest.fixture
def streamer(server: Database, kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Streamer]:
    monkeypatch.setenv("TEST_PASSWORD", server.password)
    name = f"auditxa{server.name}"
    run(server, f"DROP DATABASE IF EXISTS {name}", f"CREATE DATABASE {name}")
    made = Streamer(tmp_path, server, kafka, name)
    made.file.write_text(made.file.read_text() + "quality: {wait_seconds: 60}\n")
    yield made
    made.close()


def prepare(server: Database, db: str, xid: str, *statements: str) -> None:
    run(server, f"XA START '{xid}'", *statements, f"XA END '{xid}'", f"XA PREPARE '{xid}'", database=db)


def test_snapshot_and_check_beside_a_prepared_transaction(
    spark: SparkSession, server: Database, streamer: Streamer
) -> None:
    db, wrong = streamer.name, []
    rows = ", ".join(f"({n}, {n})" for n in range(1, 51))
    run(
        server, "CREATE TABLE t (id int PRIMARY KEY, v int)", "CREATE TABLE s (k varchar(9) PRIMARY KEY, v int)",
        f"INSERT INTO t VALUES {rows}", f"INSERT INTO s VALUES {rows}", database=db,
    )
    streamer.started()
    pipeline = load(streamer.file)

    def proven(what: str) -> None:
        try:
            tables = verify(spark, pipeline, [], compact="yes")["tables"]
            print(what, {name: facts["equal"] for name, facts in tables.items()})
        except Exception as error:
            wrong.append((what, type(error).__name__, str(error)[:600]))

    def read(what: str) -> None:
        try:
            snapshot(spark, pipeline, [], compact="yes")
        except Exception as error:
            wrong.append((what, type(error).__name__, str(error)[:600]))

    read("first snapshot")
    for n, end in enumerate(("COMMIT", "ROLLBACK")):
        prepare(
            server, db, f"x{n}", "UPDATE t SET v = v + 100 WHERE id IN (1, 2)", f"INSERT INTO t VALUES ({100 + n}, 1)",
            f"DELETE FROM s WHERE k = '{n + 7}'", f"UPDATE s SET v = -1 WHERE k = '{n + 20}'",
        )
        run(server, "UPDATE t SET v = v + 1 WHERE id IN (41, 42)", "UPDATE s SET v = v + 1 WHERE k = '44'", database=db)
        proven(f"prepared {end}")
        read(f"snapshot while prepared {end}")
        try:
            backfill(spark, pipeline, [f"{db}.t"], source="mysql", compact="yes")
        except Exception as error:
            wrong.append((f"backfill {end}", type(error).__name__, str(error)[:600]))
        proven(f"prepared and read {end}")
        run(server, f"XA {end} 'x{n}'", database=db)
        proven(f"ended {end}")
        run(server, "UPDATE t SET v = v + 1 WHERE id IN (1, 3)", database=db)
        proven(f"later {end}")
    for one in wrong:
        print("WRONG", one)
    assert wrong == []
