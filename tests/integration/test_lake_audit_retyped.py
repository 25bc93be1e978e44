"""Audit: a column whose type became one that Spark casts nothing of before to; check and history behind a snapshot."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from contract.pipeline import load
from spark.compaction.compaction import compact
from spark.errors import LakeError
from spark.history.history import History
from spark.job import JobFailedError
from spark.jobs.snapshot import snapshot
from spark.jobs.verify import verify
from spark.lake.lake import Lake
from stack.database import Database
from stack.kafka import Kafka
from tests.integration.decoding import run
from tests.integration.streaming import Streamer
from tests.integration.test_lake_evolution import CARRIED, becomes

# The column before and behind, and a value before and behind.
TABLES = {
    "bits": ("bit(1)", "bit(8)", "1", "3"),
    "moment": ("datetime", "bigint", "'2024-01-01 10:00:00'", "7"),
    "day": ("date", "int", "'2024-01-01'", "7"),
    "whole": ("int", "date", "20240101", "'2024-01-02'"),
    "point": ("point", "int", "st_geomfromtext('point(1 2)')", "7"),
}


@pytest.fixture
def streamer(server: Database, kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Streamer]:
    monkeypatch.setenv("TEST_PASSWORD", server.password)
    name = f"auditretyped{server.name}"
    run(server, f"DROP DATABASE IF EXISTS {name}", f"CREATE DATABASE {name}")
    made = Streamer(tmp_path, server, kafka, name)
    yield made
    made.close()


@pytest.mark.usefixtures("without_expectations")
def test_check_and_history_behind_it(spark: SparkSession, server: Database, streamer: Streamer) -> None:
    db, wrong = streamer.name, list[tuple[str, ...]]()
    for name, (old, _, value, _) in TABLES.items():
        run(
            server, f"CREATE TABLE {name} (id int PRIMARY KEY, x {old}, z int)",
            f"INSERT INTO {name} VALUES (1, {value}, 1), (2, {value}, 1)", database=db,
        )
    streamer.started()
    pipeline = load(streamer.file)
    snapshot(spark, pipeline, [])
    streamer.wait_until_released()
    compact(spark, pipeline)
    run(server, *(f"UPDATE {name} SET z = 2" for name in TABLES), database=db)
    time.sleep(1.2)
    moment = datetime.now(UTC)
    time.sleep(1.2)
    for name, (old, new, _, value) in TABLES.items():
        change = f"MODIFY x {new}" if old != "point" else f"DROP COLUMN x, ADD COLUMN x {new} AFTER id"
        run(
            server, "SET sql_mode = ''", f"UPDATE {name} SET z = 3 WHERE id = 1", f"ALTER TABLE {name} {change}",
            f"UPDATE {name} SET x = {value} WHERE id = 1", database=db,
        )
    streamer.wait_until_released()
    try:
        compact(spark, pipeline)
    except JobFailedError as error:
        print("STOPPED", error)
    snapshot(spark, pipeline, [])
    streamer.wait_until_released()
    compact(spark, pipeline)
    run(server, *(f"UPDATE {name} SET z = 9 WHERE id = 2" for name in TABLES), database=db)
    for name in TABLES:
        print(name, becomes(pipeline, name))
        assert becomes(pipeline, name) == CARRIED, name
        try:
            print(verify(spark, pipeline, [f"{db}.{name}"], compact="yes")["tables"][f"{db}.{name}"]["equal"])
        except Exception as error:
            wrong.append(("verify", name, type(error).__name__, str(error)[:300]))
        history = History(spark, Lake(spark, pipeline), db, name)
        try:
            print(name, "as of", [tuple(row) for row in history.as_of(moment).collect()])
            if name == "bits":
                wrong.append(("as_of", name, str([tuple(row) for row in history.as_of(moment).collect()])))
        except LakeError as error:
            print(name, "as of refused:", error)
        except Exception as error:
            wrong.append(("as_of", name, type(error).__name__, str(error)[:300]))
        for part in (history.versions, history.changes):
            try:
                print(name, [tuple(row) for row in part().collect()])
            except Exception as error:
                wrong.append((part.__name__, name, type(error).__name__, str(error)[:300]))
    for one in wrong:
        print("WRONG", one)
    assert wrong == []


@pytest.mark.usefixtures("without_expectations")
def test_one_such_table_keeps_no_other_from_being_checked(
    spark: SparkSession, server: Database, streamer: Streamer
) -> None:
    """Neither while it is stopped, nor behind the snapshot."""
    db, wrong = streamer.name, list[tuple[str, ...]]()
    run(
        server, "CREATE TABLE day (id int PRIMARY KEY, x date)", "CREATE TABLE plain (id int PRIMARY KEY, x int)",
        "INSERT INTO day VALUES (1, '2024-01-01')", "INSERT INTO plain VALUES (1, 1)", database=db,
    )
    streamer.started()
    pipeline = load(streamer.file)
    snapshot(spark, pipeline, [])
    streamer.wait_until_released()
    compact(spark, pipeline)
    run(
        server, "UPDATE day SET x = '2024-01-02'", "UPDATE plain SET x = 2", "ALTER TABLE day MODIFY x int",
        "UPDATE day SET x = 7", database=db,
    )

    def checked(what: str) -> None:
        try:
            tables = verify(spark, pipeline, [], compact="yes")["tables"]
        except JobFailedError as error:
            tables = error.facts["tables"]
        except Exception as error:
            wrong.append((what, type(error).__name__, str(error)[:200]))
            return
        print(what, {name: (facts["equal"], facts["reason"]) for name, facts in tables.items()})
        if not tables[f"{db}.plain"]["equal"]:
            wrong.append((what, "plain", str(tables)))

    checked("stopped")
    snapshot(spark, pipeline, [f"{db}.day"], compact="yes")
    checked("behind the snapshot")
    run(server, "UPDATE day SET x = 8", "UPDATE plain SET x = 3", database=db)
    checked("later")
    for one in wrong:
        print("WRONG", one)
    assert wrong == []
