"""Statements on a table in the middle of its snapshot: each ends with the source's rows, or says what mends it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract import status
from contract.pipeline import Pipeline, load
from spark.compaction.compaction import compact
from spark.job import JobFailedError
from spark.jobs.snapshot import snapshot
from spark.lake.lake import Lake
from spark.snapshot.table_read import TableRead
from stack.database import Database
from stack.kafka import Kafka
from tests.integration.decoding import run
from tests.integration.streaming import Streamer

NAME, OTHER = "midway", "midway_other"
COLUMNS = "(a int, b int, v int, PRIMARY KEY (a, b))"
PARTS = " PARTITION BY RANGE (a) (PARTITION p0 VALUES LESS THAN (150), PARTITION p1 VALUES LESS THAN (1000))"
ROWS = 250  # two chunks and a half, each a part of its own
GROUPS = "snapshot: {chunk_rows: 100, parallelism: 1, max_rows_per_second: 1000000}\n"
# By table: what is done to it once its first chunk was read. `other` is a database that the pipeline does not have.
STATEMENTS: dict[str, tuple[str, ...]] = {
    "truncated": ("TRUNCATE TABLE truncated", "INSERT INTO truncated VALUES (1, 1, -1), (200, 200, -1)"),
    "emptied": ("TRUNCATE TABLE emptied",),
    "made_again": (
        "DROP TABLE made_again", f"CREATE TABLE made_again {COLUMNS}", "INSERT INTO made_again VALUES (2, 2, -2)",
    ),
    "swapped": (
        f"CREATE TABLE {OTHER}.swapped LIKE swapped",
        f"INSERT INTO {OTHER}.swapped SELECT a, b, v + 1 FROM swapped WHERE a > 20",
        f"RENAME TABLE swapped TO {OTHER}.swapped_old, {OTHER}.swapped TO swapped",
        "UPDATE swapped SET v = -3 WHERE a = 30",
    ),
    "rekeyed": ("ALTER TABLE rekeyed DROP PRIMARY KEY, ADD PRIMARY KEY (b)", "UPDATE rekeyed SET v = -4 WHERE a = 5"),
    "parted": ("ALTER TABLE parted TRUNCATE PARTITION p0", "UPDATE parted SET v = -5 WHERE a = 200"),
    "exchanged": (
        f"CREATE TABLE {OTHER}.exchanged {COLUMNS}", f"INSERT INTO {OTHER}.exchanged VALUES (7, 7, -6)",
        f"ALTER TABLE exchanged EXCHANGE PARTITION p0 WITH TABLE {OTHER}.exchanged",
    ),
    "narrowed": ("ALTER TABLE narrowed MODIFY v smallint NOT NULL", "UPDATE narrowed SET v = -7 WHERE a = 240"),
    "less": ("ALTER TABLE less DROP COLUMN v", "INSERT INTO less VALUES (900, 900)"),
    "renamed": ("ALTER TABLE renamed RENAME COLUMN v TO w", "UPDATE renamed SET w = -8 WHERE a IN (3, 240)"),
}  # fmt: skip


@pytest.fixture
def streamer(server: Database, kafka: Kafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Streamer]:
    monkeypatch.setenv("TEST_PASSWORD", server.password)
    name = f"{NAME}{server.name}"
    run(server, *(f"DROP DATABASE IF EXISTS {db}" for db in (name, OTHER)), f"CREATE DATABASE {name}")
    run(server, f"CREATE DATABASE {OTHER}")
    made = Streamer(tmp_path, server, kafka, name)
    made.file.write_text(made.file.read_text() + GROUPS)
    rows = ", ".join(f"({n}, {n}, {n})" for n in range(ROWS))
    for table in STATEMENTS:
        parts = PARTS if table in ("parted", "exchanged") else ""
        run(server, f"CREATE TABLE {table} {COLUMNS}{parts}", f"INSERT INTO {table} VALUES {rows}", database=name)
    yield made
    made.close()


def meddling(server: Database, db: str, done: set[str]) -> Callable[..., None]:
    """Reads a part as ever, the second one of each table behind its statements."""
    part = TableRead._part

    def read(self: TableRead, *of_it: Any) -> None:
        table = self.progress.shape.table
        if len(self.progress.parts) == 1 and table not in done:
            run(server, *STATEMENTS[table], database=db)
            done.add(table)
        part(self, *of_it)

    return read


@pytest.mark.soak  # an ALTER under writes: test_lake_servers.py
def test_a_statement_in_the_middle_of_a_tables_read_is_never_passed_over(
    spark: SparkSession, server: Database, streamer: Streamer, monkeypatch: pytest.MonkeyPatch
) -> None:
    streamer.started()
    pipeline, done = load(streamer.file), set[str]()
    monkeypatch.setattr(TableRead, "_part", meddling(server, streamer.name, done))
    read(spark, pipeline, streamer)
    assert done == {*STATEMENTS}
    doubtful = {table for table in STATEMENTS if doubts(pipeline, table)}
    wrong = {table for table in STATEMENTS if in_lake(spark, pipeline, table) != source(server, streamer.name, table)}
    assert wrong <= doubtful, "of these the lake has other rows, and nothing says so"
    for _ in range(2):  # of some the stream first has to tell the new shape
        read(spark, pipeline, streamer)
    for table in STATEMENTS:
        assert doubts(pipeline, table) == [], table
        assert in_lake(spark, pipeline, table) == source(server, streamer.name, table), table


def read(spark: SparkSession, pipeline: Pipeline, streamer: Streamer) -> None:
    """A snapshot, which may leave tables out, and all that came until its end."""
    for job in (lambda: snapshot(spark, pipeline, []), lambda: compact(spark, pipeline)):
        try:
            job()
        except JobFailedError as error:
            print(error)
        streamer.wait_until_released()


def doubts(pipeline: Pipeline, table: str) -> list[Any]:
    found = status.read(pipeline)
    assert found is not None
    if (known := found.tables.get(f"{pipeline.name}.{table}")) is None:
        return ["it is not there"]
    lacks = "no snapshot" if known.snapshot is None else None
    return [one for one in (known.stopped, known.stale, known.unequal, known.unread, known.ahead, lacks) if one]


def source(server: Database, db: str, table: str) -> list[tuple[Any, ...]]:
    with server.connect(database=db) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table}")
        return sorted(cursor.fetchall())


def in_lake(spark: SparkSession, pipeline: Pipeline, table: str) -> list[tuple[Any, ...]]:
    lake = Lake(spark, pipeline)
    if not lake.is_table(path := lake.table(pipeline.name, table)):
        return []
    rows = spark.read.format("delta").load(path).drop("_seq", "_ts")
    return sorted(tuple(row) for row in rows.collect())
