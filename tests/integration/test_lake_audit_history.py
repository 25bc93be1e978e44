"""Audit: the past of a table with a new column of the name that another one had before it was renamed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from contract.pipeline import Pipeline, load
from readers.lake import query
from spark.compaction.compaction import compact
from spark.history.history import History
from spark.job import JobFailedError
from spark.jobs.snapshot import snapshot
from spark.lake.lake import Lake
from stack.database import Database
from stack.kafka import Kafka
from tests.integration.decoding import run
from tests.integration.streaming import Streamer
from tests.integration.test_lake_evolution import CARRIED, becomes

TABLES = {"same": ("int", "int", 5, 7), "other": ("varchar(20)", "int", "'five'", 7)}


@pytest.fixture
def streamer(server: Database, kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Streamer]:
    monkeypatch.setenv("TEST_PASSWORD", server.password)
    name = f"audithist{server.name}"
    run(server, f"CREATE DATABASE {name}")
    made = Streamer(tmp_path, server, kafka, name)
    yield made
    made.close()


def followed(spark: SparkSession, streamer: Streamer, pipeline: Pipeline) -> None:
    streamer.wait_until_released()
    compact(spark, pipeline)


def test_a_name_that_is_given_again(spark: SparkSession, server: Database, streamer: Streamer) -> None:
    db = streamer.name
    for name, (old, _, value, _) in TABLES.items():
        run(
            server, f"CREATE TABLE {name} (id int PRIMARY KEY, a {old}, z int)",
            f"INSERT INTO {name} VALUES (1, {value}, 1), (2, {value}, 1)", database=db,
        )
    streamer.started()
    pipeline = load(streamer.file)
    snapshot(spark, pipeline, [])
    followed(spark, streamer, pipeline)
    run(server, *(f"UPDATE {name} SET z = 2" for name in TABLES), database=db)
    time.sleep(1.2)
    moment = datetime.now(UTC)
    time.sleep(1.2)
    for name in TABLES:
        run(
            server, f"UPDATE {name} SET z = 3 WHERE id = 1", f"ALTER TABLE {name} RENAME COLUMN a TO b",
            f"UPDATE {name} SET z = 4 WHERE id = 1", database=db,
        )
    followed(spark, streamer, pipeline)
    for name, (_, new, _, value) in TABLES.items():
        run(
            server, f"ALTER TABLE {name} ADD COLUMN a {new}", f"UPDATE {name} SET a = {value} WHERE id = 1",
            database=db,
        )
    followed(spark, streamer, pipeline)
    lake, wrong = Lake(spark, pipeline), []
    for name, (_, _, value, _) in TABLES.items():
        was = value.strip("'") if isinstance(value, str) else value
        assert becomes(pipeline, name) == CARRIED, name
        wanted = [(1, was, 2, None), (2, was, 2, None)]
        try:
            past = History(spark, lake, db, name).as_of(moment).select("id", "b", "z", "a")
            found = sorted(tuple(row) for row in past.collect())
            if found != wanted:
                wrong.append(("spark", name, found))
        except Exception as error:
            wrong.append(("spark", name, type(error).__name__, str(error)[:200]))
        try:
            rows = query(pipeline, f"SELECT id, b, z, a FROM {name}_as_of('{moment.isoformat()}')").rows()
            if (found := sorted(rows)) != wanted:
                wrong.append(("sql", name, found))
        except Exception as error:
            wrong.append(("sql", name, type(error).__name__, str(error)[:200]))
        try:
            versions = History(spark, lake, db, name).versions().where("id = 1").select("id", "b", "z", "a", "valid_to")
            print(name, [tuple(row) for row in versions.orderBy("z").collect()])
        except Exception as error:
            wrong.append(("versions", name, type(error).__name__, str(error)[:200]))
    assert wrong == []


def test_a_column_that_came_back_with_another_type(
    spark: SparkSession, server: Database, streamer: Streamer
) -> None:
    db = streamer.name
    run(
        server, "CREATE TABLE back (id int PRIMARY KEY, x varchar(20), z int)",
        "INSERT INTO back VALUES (1, 'five', 1), (2, 'six', 1)", database=db,
    )
    streamer.started()
    pipeline = load(streamer.file)
    snapshot(spark, pipeline, [])
    followed(spark, streamer, pipeline)
    run(
        server, "UPDATE back SET z = 2", "ALTER TABLE back DROP COLUMN x", "UPDATE back SET z = 3 WHERE id = 1",
        "ALTER TABLE back ADD COLUMN x int", "UPDATE back SET x = 7 WHERE id = 1", database=db,
    )
    streamer.wait_until_released()
    try:
        compact(spark, pipeline)
    except JobFailedError as error:
        print("stopped:", error)
    snapshot(spark, pipeline, [])
    followed(spark, streamer, pipeline)
    assert becomes(pipeline, "back") == CARRIED
    wrong, history = list[tuple[str, ...]](), History(spark, Lake(spark, pipeline), db, "back")
    for name, ask in {"versions": history.versions, "changes": history.changes}.items():
        try:
            print(name, [tuple(row) for row in ask().collect()])
        except Exception as error:
            wrong.append((name, type(error).__name__, str(error)[:200]))
    for name in ("history", "changes"):
        try:
            print(name, list(query(pipeline, f"SELECT * FROM back_{name}").rows()))
        except Exception as error:
            wrong.append((f"sql {name}", type(error).__name__, str(error)[:200]))
    assert wrong == []
