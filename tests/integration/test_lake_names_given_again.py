"""The past of tables of which a new column got the name of one that was renamed or dropped. In Spark and in DuckDB."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime

import pytest
from pyspark.sql import SparkSession

from contract.pipeline import load
from spark.compaction.compaction import compact
from spark.history.history import History
from spark.job import JobFailedError
from spark.jobs.snapshot import snapshot
from spark.lake.lake import Lake
from stack.database import Database
from tests.integration.decoding import run
from tests.integration.streaming import Streamer
from tests.integration.test_lake_breaks import Past

NAME = "namesagain"
VALUES = {"same": ("int", 5), "other": ("varchar(20)", "five"), "back": ("varchar(20)", "five")}
BEFORE = [
    statement
    for name, (kind, value) in VALUES.items()
    for statement in (
        f"CREATE TABLE {name} (id int PRIMARY KEY, a {kind}, z int)",
        f"INSERT INTO {name} VALUES (1, '{value}', 1), (2, '{value}', 1)",
    )
]
RENAMED = [
    statement
    for name in ("same", "other")
    for statement in (
        f"UPDATE {name} SET z = 3 WHERE id = 1", f"ALTER TABLE {name} RENAME COLUMN a TO b",
        f"UPDATE {name} SET z = 4 WHERE id = 1", f"ALTER TABLE {name} ADD COLUMN a int",
        f"UPDATE {name} SET a = 7, z = 5 WHERE id = 1",
    )
]  # fmt: skip
DROPPED = (
    "ALTER TABLE back DROP COLUMN a", "UPDATE back SET z = 3 WHERE id = 1", "ALTER TABLE back ADD COLUMN a int",
    "UPDATE back SET a = 7, z = 5 WHERE id = 1",
)  # fmt: skip


@pytest.mark.soak  # two minutes each; the rule by itself: tests/spark/test_names_given_again.py, tests/contract
def test_a_new_column_has_no_values_of_the_one_that_had_its_name(
    spark: SparkSession,
    make: Callable[..., Streamer],
    server: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TEST_PASSWORD", server.password)
    name = f"{NAME}{server.name}"
    streamer = make(name, mysql=server)
    run(server, *BEFORE, database=name)
    streamer.started()
    pipeline = load(streamer.file)
    snapshot(spark, pipeline, [])
    run(server, *(f"UPDATE {table} SET z = 2" for table in VALUES), database=name)
    streamer.wait_until_released()
    compact(spark, pipeline)
    time.sleep(1.1)
    moment = datetime.now(UTC)
    time.sleep(1.1)
    run(server, *RENAMED, *DROPPED, database=name)
    streamer.wait_until_released()
    with suppress(JobFailedError):  # a column that came back with another type waits for its snapshot
        compact(spark, pipeline)
    snapshot(spark, pipeline, [f"{name}.back"])
    compact(spark, pipeline)

    past = Past(spark, pipeline)
    for table in ("same", "other"):
        was = VALUES[table][1]
        past.as_of(table, moment)
        found = History(spark, Lake(spark, pipeline), name, table).as_of(moment).select("id", "b", "z", "a")
        assert sorted(map(tuple, found.collect())) == [(1, was, 2, None), (2, was, 2, None)]
        told = past.versions(table, "z", "b", "a")
        assert {one[0]: one[1:3] for one in told} == dict.fromkeys((1, 2, 3, 4), (was, None)) | {5: (was, 7)}
    assert {one[:2] for one in past.versions("back", "z", "a")} == {(1, None), (2, None), (3, None), (5, 7)}
    past.refused("back", moment)
