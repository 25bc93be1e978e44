"""A power cut in a compaction: the next one loses nothing, whatever is left of what was not synced."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from contract.pipeline import load
from spark.compaction.compaction import compact
from spark.failpoints import hooked
from spark.jobs.snapshot import snapshot
from spark.lake.lake import Lake
from stack.kafka import Kafka
from stack.mysql import MySQL
from tests.integration.streaming import Streamer, execute
from tests.power_cut import disk

TABLES = ("t", "u")
FEW = ("changes written", "landed", "table merged")
SEED = 26  # of these: a commit goes without what Delta made of it, and a note of Spark's is empty
POINTS = (
    "file written", "changes written", "marks written", "landed", "table merged", "merged", "status written",
    "run ended",
)  # fmt: skip
Row = tuple[int, int]


class PowerCutError(Exception):
    pass


@pytest.fixture
def streamer(
    tmp_path: Path, mysql: MySQL, kafka: Kafka, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Streamer]:
    monkeypatch.setenv("TEST_PASSWORD", mysql.password)
    name = f"powercut{request.node.callspec.id}"
    execute(mysql, f"CREATE DATABASE {name}")
    for table in TABLES:
        execute(mysql, f"CREATE TABLE {name}.{table} (id int PRIMARY KEY, v int)", *changed(f"{name}.{table}", 0))
    made = Streamer(tmp_path, mysql, kafka, name)
    made.started()
    yield made
    made.close()


def changed(table: str, n: int) -> tuple[str, str]:
    """A row that is new, and all that are there by then are others."""
    return f"INSERT INTO {table} VALUES ({n}, 0)", f"UPDATE {table} SET v = v + 1"


def source_rows(mysql: MySQL, table: str) -> list[Row]:
    with mysql.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT id, v FROM {table} ORDER BY id")
        return [*cursor.fetchall()]


@pytest.mark.parametrize("points", [FEW, pytest.param(POINTS * 3, marks=pytest.mark.soak)], ids=["few", "all"])
def test_a_power_cut_loses_nothing(
    spark: SparkSession, streamer: Streamer, mysql: MySQL, points: tuple[str, ...]
) -> None:
    pipeline = load(streamer.file)
    lake = Lake(spark, pipeline)
    streamer.wait_until_released()
    snapshot(spark, pipeline, [])
    compact(spark, pipeline)
    for n, point in enumerate(points, 1):
        execute(mysql, *(statement for table in TABLES for statement in changed(f"{streamer.name}.{table}", n)))
        streamer.wait_until_released()

        def cut(reached: str, point: str = point) -> None:
            if reached == point:
                raise PowerCutError

        seed = SEED if points == FEW else random.randrange(10**6)
        print(f"{point}: seed {seed}")  # which the log of a test that fails has
        with disk(lake.root, seed) as power, hooked(cut):
            with pytest.raises(PowerCutError):
                compact(spark, pipeline)
            power.cut()
        lake.forget_logs()
        compact(spark, pipeline)
        for table in TABLES:
            frame = spark.read.format("delta").load(lake.table(streamer.name, table))
            found = sorted((row["id"], row["v"]) for row in frame.collect())
            assert found == source_rows(mysql, f"{streamer.name}.{table}"), (seed, point, power.lost)
    changes = spark.read.format("delta").load(lake.changes)
    times = changes.groupBy("tbl", "_seq").count().where("count > 1").collect()
    assert times == [], (seed, "what was done again landed twice")
