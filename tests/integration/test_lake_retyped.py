"""Columns whose type became one to which Spark converts nothing of before: checks while their tables are stopped and
behind the snapshot, and the past."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract.pipeline import Pipeline, load
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

# The column before, what becomes of it, and a value before and behind.
TABLES = {
    "bits": ("bit(1)", "MODIFY x bit(8)", "1", "3"),
    "day": ("date", "MODIFY x int", "'2024-01-01'", "7"),
    "point": ("point", "DROP COLUMN x, ADD COLUMN x int AFTER id", "st_geomfromtext('point(1 2)')", "7"),
    "plain": ("int", "COMMENT 'as it was'", "1", "2"),
}


# The short forms, of each kind of type by itself, are in tests/spark/test_breaks.py and test_rewind.py.
@pytest.fixture(params=[pytest.param(name, marks=pytest.mark.soak) for name in ("mysql", "mysql80", "mariadb")])
def server(request: pytest.FixtureRequest) -> Database:
    found: Database = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def streamer(server: Database, kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Streamer]:
    monkeypatch.setenv("TEST_PASSWORD", server.password)
    name = f"retyped{server.name}"
    run(server, f"DROP DATABASE IF EXISTS {name}", f"CREATE DATABASE {name}")
    made = Streamer(tmp_path, server, kafka, name)
    yield made
    made.close()


def checked(spark: SparkSession, pipeline: Pipeline) -> dict[str, Any]:
    """A check of all tables: each with its reason, None of those that are equal."""
    try:
        tables = verify(spark, pipeline, [], compact="yes")["tables"]
    except JobFailedError as error:
        tables = error.facts["tables"]
    return {name.partition(".")[2]: None if facts["equal"] else facts["reason"] for name, facts in tables.items()}


def past(spark: SparkSession, pipeline: Pipeline, table: str, moment: datetime) -> set[Any]:
    """The column's values in all versions. As of the moment they are refused."""
    history = History(spark, Lake(spark, pipeline), pipeline.name, table)
    with pytest.raises(LakeError, match=r"history of .* begins (20|with the next change)"):
        history.as_of(moment)
    history.changes().collect()
    return {row["x"] for row in history.versions().collect()}


@pytest.mark.usefixtures("without_expectations")
def test_the_check_and_the_past(spark: SparkSession, server: Database, streamer: Streamer) -> None:
    db = streamer.name
    for name, (old, _, value, _) in TABLES.items():
        made = f"CREATE TABLE {name} (id int PRIMARY KEY, x {old}, z int)"
        run(server, made, f"INSERT INTO {name} VALUES (1, {value}, 1), (2, {value}, 1)", database=db)
    streamer.started()
    pipeline = load(streamer.file)
    snapshot(spark, pipeline, [], compact="yes")
    moment = datetime.now(UTC)
    time.sleep(1.1)
    for name, (_, change, _, value) in TABLES.items():
        before, behind = f"UPDATE {name} SET z = 3 WHERE id = 1", f"UPDATE {name} SET x = {value} WHERE id = 1"
        run(server, "SET sql_mode = ''", before, f"ALTER TABLE {name} {change}", behind, database=db)

    told = checked(spark, pipeline)
    assert told.pop("plain") is None
    assert {name: str(reason)[:20] for name, reason in told.items()} == dict.fromkeys(told, "the table is stopped")
    snapshot(spark, pipeline, [f"{db}.{name}" for name in told], compact="yes")
    assert checked(spark, pipeline) == dict.fromkeys(TABLES)
    assert {name: past(spark, pipeline, name, moment) for name in told} == {
        "bits": {None, b"\x03", b"\x01"}, "day": {None, 7, 20240101}, "point": {None, 7},
    }  # fmt: skip

    run(server, "SET sql_mode = ''", "ALTER TABLE plain MODIFY x bit(8)", database=db)  # and no change behind it
    snapshot(spark, pipeline, [f"{db}.plain"], compact="yes")
    assert past(spark, pipeline, "plain", moment) == {None, b"\x01"}
    run(server, "UPDATE plain SET z = 5", database=db)
    assert checked(spark, pipeline) == dict.fromkeys(TABLES)
    assert past(spark, pipeline, "plain", moment) == {None, b"\x01", b"\x02"}
