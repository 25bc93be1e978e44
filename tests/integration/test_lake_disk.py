"""A lake on a disk that is read-only, then full, then mended: each time a message, and in the end no row lost."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import DataFrame, SparkSession

from contract.pipeline import load
from spark.compaction.compaction import compact
from spark.jobs.repair import repair
from spark.jobs.snapshot import snapshot
from spark.lake.lake import Lake
from spark.landing.changes import Landing
from stack.kafka import Kafka
from stack.mysql import MySQL
from tests.integration.by_hand import make_topics, pipeline_of, send
from tests.integration.spark_jobs import message
from tests.integration.streaming import Streamer, execute
from tests.small_disk import filled, mounted
from tests.spark.changes_by_hand import ITEMS, record

ROWS = 20_000
DATABASE = "disk"


@pytest.fixture(autouse=True)
def _password(mysql: MySQL, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEST_PASSWORD", mysql.password)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 2 MB, read-only at first, where the pipeline's lake is."""
    with mounted(tmp_path / "lake", "ro,size=2m") as folder:
        yield folder


def test_a_read_only_and_a_full_disk(
    spark: SparkSession, mysql: MySQL, kafka: Kafka, tmp_path: Path, disk: Path
) -> None:
    streamer = Streamer(tmp_path, mysql, kafka, DATABASE)
    pipeline = load(streamer.file)
    try:
        execute(mysql, f"CREATE DATABASE {DATABASE}")
        streamer.started()
        fill(mysql, DATABASE)
        execute(mysql, f"DELETE FROM {DATABASE}.t WHERE id % 3 = 0")
        streamer.wait_until_released()
    finally:
        streamer.close()

    refused = message(spark, pipeline, compact)
    assert str(disk) in refused
    assert "writ" in refused, refused

    subprocess.run(["mount", "-o", "remount,rw,size=2m", str(disk)], check=True)
    full = message(spark, pipeline, compact)
    assert "disk" in full, full
    assert "full" in full, full

    subprocess.run(["mount", "-o", "remount,rw,size=300m", str(disk)], check=True)
    compact(spark, pipeline)
    assert_equal(mysql, disk, DATABASE, ROWS - ROWS // 3)


@pytest.mark.soak
def test_a_disk_that_fills_in_the_middle_of_a_snapshot_and_of_a_repair(
    spark: SparkSession, mysql: MySQL, kafka: Kafka, tmp_path: Path, disk: Path
) -> None:
    database = "diskful"
    streamer = Streamer(tmp_path, mysql, kafka, database)
    streamer.file.write_text(streamer.file.read_text() + "snapshot: {chunk_rows: 1000}\n")
    pipeline = load(streamer.file)
    execute(mysql, f"CREATE DATABASE {database}")
    fill(mysql, database)  # before the streamer's time: only the snapshot has these rows
    try:
        streamer.started()
        execute(mysql, f"DELETE FROM {database}.t WHERE id % 1000 = 0")
        streamer.wait_until_released()
    finally:
        streamer.close()

    subprocess.run(["mount", "-o", "remount,rw,size=2m", str(disk)], check=True)
    full = message(spark, pipeline, snapshot, [])
    assert full.startswith("the disk is full: free some space under "), full
    assert str(disk) in full
    # What was staged is gone again, so compaction has its space, and it finds nothing to apply.
    compacted = compact(spark, pipeline)
    assert [table["snapshot"] for table in compacted["tables"].values()] == [False]
    assert [table["rows"] for table in compacted["tables"].values()] == [0]

    subprocess.run(["mount", "-o", "remount,rw,size=300m", str(disk)], check=True)
    snapshot(spark, pipeline, [])
    compact(spark, pipeline)
    assert_equal(mysql, disk, database, ROWS - ROWS // 1000)

    lake, all = Lake(spark, pipeline), {"from": "1", "to": str(ROWS)}
    spark.sql(f"UPDATE delta.`{lake.table(database, 't')}` SET noise = 'x' WHERE id % 2 = 0")
    with filled(disk, 2**20):
        full = message(spark, pipeline, partial(repair, **all), [f"{database}.t"])
    assert full.startswith("the disk is full: free some space under "), full
    assert lake.list(lake.at("_parts")) == [], "what was read of it gives its space back"
    repair(spark, pipeline, [f"{database}.t"], **all)
    compact(spark, pipeline)
    assert_equal(mysql, disk, database, ROWS - ROWS // 1000)


@pytest.mark.parametrize("written", [False, True], ids=["before anything of it is written", "behind it"])
def test_a_batch_that_has_no_room_is_made_smaller(
    spark: SparkSession, kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: bool
) -> None:
    name, rows, append = f"room{'behind' if written else 'before'}", 4000, Landing._append
    pipeline = pipeline_of(tmp_path, kafka, name)
    topic, table = f"{name}.{name}.items", ITEMS.model_copy(update={"db": name})
    make_topics(kafka, topic, f"{name}.schemas")
    send(kafka, f"{name}.schemas", (b"1", table.model_dump_json().encode()))
    row = {"name": "n", "price": "1.00"}
    made = (record(n, (0, 1, n, 0, 0), "c", {"id": n, **row}, None, table, pipeline=name) for n in range(rows))
    send(kafka, topic, *((key, value) for key, value, *_ in made))
    landed = list[int]()

    def with_room(landing: Landing, fresh: DataFrame, number: int, query: str) -> None:
        count = fresh.count()
        if written or count <= 1000:
            append(landing, fresh, number, query)
        if count > 1000:
            raise OSError("No space left on device")
        landed.append(count)

    monkeypatch.setattr(Landing, "_append", with_room)
    assert "compaction.max_offsets_per_batch" in message(spark, pipeline, compact)
    smaller = pipeline.compaction.model_copy(update={"max_offsets_per_batch": 1000})
    monkeypatch.setattr(Landing, "_append", append if written else with_room)
    compact(spark, pipeline.model_copy(update={"compaction": smaller}))
    lake = Lake(spark, pipeline)
    assert spark.read.format("delta").load(lake.changes).count() == rows
    assert sorted(pl.scan_delta(lake.table(name, "items")).select("id").collect()["id"]) == list(range(rows))
    assert landed == ([] if written else [1000] * 4)


def fill(mysql: MySQL, database: str) -> None:
    noise = "concat(sha2(n, 512), sha2(n + 0.5, 256))"  # does not compress, so the disk fills
    numbers = f"WITH RECURSIVE s (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < {ROWS})"
    execute(
        mysql,
        f"CREATE TABLE {database}.t (id int PRIMARY KEY, noise varchar(200))",
        f"SET SESSION cte_max_recursion_depth = {ROWS}",
        f"INSERT INTO {database}.t {numbers} SELECT n, {noise} FROM s",
    )


def assert_equal(mysql: MySQL, disk: Path, database: str, rows: int) -> None:
    found = pl.scan_delta(str(disk / database / database / "t")).select("id", "noise").collect()
    with mysql.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT id, noise FROM {database}.t")
        expected = sorted(cursor.fetchall())
    assert len(expected) == rows
    assert sorted(found.rows()) == expected
