"""Audit: statements whose two shapes hide that stored values are others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from contract.pipeline import load
from spark.compaction.compaction import compact
from spark.job import JobFailedError
from spark.jobs.snapshot import snapshot
from stack.database import Database
from stack.kafka import Kafka
from tests.integration.decoding import run
from tests.integration.streaming import Streamer
from tests.integration.test_lake_evolution import CARRIED, becomes, in_lake, source

TABLE = "CREATE TABLE {} (id int PRIMARY KEY, a int, b varchar(20), e enum('x','y'), z int)"
CASES = {
    "reordered": "DROP COLUMN a, ADD COLUMN a int",
    "widened": "DROP COLUMN a, ADD COLUMN a bigint AFTER id",
    "longer": "DROP COLUMN b, ADD COLUMN b text AFTER a",
    "members": "DROP COLUMN e, ADD COLUMN e enum('x','y','z') AFTER b",
    "numbered": "MODIFY id bigint NOT NULL AUTO_INCREMENT",
}


@pytest.fixture
def streamer(server: Database, kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Streamer]:
    monkeypatch.setenv("TEST_PASSWORD", server.password)
    name = f"auditev{server.name}"
    run(server, f"CREATE DATABASE {name}")
    made = Streamer(tmp_path, server, kafka, name)
    yield made
    made.close()


def test_values_that_a_statement_changed_are_not_taken_for_carried(
    spark: SparkSession, server: Database, streamer: Streamer
) -> None:
    db = streamer.name
    for name in CASES:
        run(
            server, TABLE.format(name), "SET SESSION sql_mode = 'NO_AUTO_VALUE_ON_ZERO'",
            f"INSERT INTO {name} VALUES (-5, 1, 'b', 'x', 1), (0, 2, 'c', 'y', 2)", database=db,
        )
    streamer.started()
    pipeline = load(streamer.file)
    snapshot(spark, pipeline, [])
    compact(spark, pipeline)
    run(server, *(f"UPDATE {name} SET z = 0 WHERE id = -5" for name in CASES), database=db)
    for name, action in CASES.items():
        run(server, f"ALTER TABLE {name} {action}", f"UPDATE {name} SET z = 7 WHERE id = -5", database=db)
    streamer.wait_until_released()
    try:
        compact(spark, pipeline)
    except JobFailedError as error:
        print(error)
    wrong = []
    for name in CASES:
        columns, wanted = source(server, db, name)
        said = becomes(pipeline, name)
        print(name, said)
        if said == CARRIED and (found := in_lake(spark, pipeline, name, columns)) != wanted:
            wrong.append((name, found, wanted))
    assert wrong == []


COMPUTED = {
    "digits": ("d datetime NOT NULL, g varchar(40) AS (cast(d as char)) STORED", "MODIFY d datetime(3) NOT NULL"),
    "ordered": ("e enum('x','y'), g int AS (e + 0) STORED", "MODIFY e enum('y','x')"),
    "unstored": ("e enum('x','y'), g int AS (e + 0) VIRTUAL", "MODIFY e enum('z','x','y')"),
}


def test_a_computed_column_whose_base_is_altered_is_not_taken_for_carried(
    spark: SparkSession, server: Database, streamer: Streamer
) -> None:
    db = streamer.name
    for name, (columns, _) in COMPUTED.items():
        first = "d" if columns.startswith("d") else "e"
        value = "'2024-01-01 10:00:00'" if first == "d" else "'x'"
        run(
            server, f"CREATE TABLE {name} (id int PRIMARY KEY, z int, {columns})",
            f"INSERT INTO {name} (id, z, {first}) VALUES (1, 1, {value}), (2, 2, {value})", database=db,
        )
    streamer.started()
    pipeline = load(streamer.file)
    snapshot(spark, pipeline, [])
    compact(spark, pipeline)
    run(server, *(f"UPDATE {name} SET z = 0 WHERE id = 1" for name in COMPUTED), database=db)
    for name, (_, action) in COMPUTED.items():
        run(server, f"ALTER TABLE {name} {action}", f"UPDATE {name} SET z = 7 WHERE id = 1", database=db)
    streamer.wait_until_released()
    try:
        compact(spark, pipeline)
    except JobFailedError as error:
        print(error)
    wrong = []
    for name in COMPUTED:
        columns, wanted = source(server, db, name)
        said = becomes(pipeline, name)
        print(name, said)
        if said == CARRIED and (found := in_lake(spark, pipeline, name, columns)) != wanted:
            wrong.append((name, found, wanted))
    assert wrong == []
