"""The past of tables behind statements that take rows, or bring some, without a change of any row, or that give values
another form: what cannot be known is refused, and nothing is said that never was. In Spark and in DuckDB."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract.pipeline import Pipeline, load
from readers.errors import LakeReadError
from readers.lake import query
from spark.compaction.compaction import compact
from spark.errors import LakeError
from spark.history.history import History
from spark.job import JobFailedError
from spark.jobs.snapshot import snapshot
from spark.lake.lake import Lake
from stack.database import Database
from tests.integration.decoding import run
from tests.integration.streaming import Streamer

NAME = "breaks"
PARTS = "PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (10), PARTITION p1 VALUES LESS THAN (100))"
BEFORE = (
    f"CREATE TABLE parted (id int PRIMARY KEY, v int) {PARTS}",
    "INSERT INTO parted VALUES (1, 1), (2, 2), (20, 20), (21, 21)",
    "CREATE TABLE dropped (id int PRIMARY KEY, v int)",
    "INSERT INTO dropped VALUES (1, 1), (2, 2)",
    "CREATE TABLE hidden_x (id int PRIMARY KEY, v int)",
    "INSERT INTO hidden_x VALUES (1, 1)",
    "CREATE TABLE keyed (at datetime PRIMARY KEY, v int)",
    "INSERT INTO keyed VALUES ('2026-01-01 00:00:00', 1)",
    "CREATE TABLE formed (id int PRIMARY KEY, data blob, words text)",
    "INSERT INTO formed VALUES (1, 'hello', 'odd')",
    "CREATE TABLE cased (id int PRIMARY KEY, name varchar(10))",
    "INSERT INTO cased VALUES (1, 'a')",
)
KNOWN = (
    "UPDATE parted SET v = 10 WHERE id = 1",
    "INSERT INTO parted VALUES (3, 3)",
    "UPDATE dropped SET v = 10 WHERE id = 1",
    "UPDATE keyed SET v = 2",
    "UPDATE formed SET data = 'hello2', words = 'abcde'",
    "UPDATE cased SET name = 'b'",
)
BREAKING = (
    "UPDATE hidden_x SET v = 2",
    "RENAME TABLE hidden_x TO x",
    "ALTER TABLE parted DROP PARTITION p0",
    "DROP TABLE dropped",
    "CREATE TABLE dropped (id int PRIMARY KEY, v int)",
    "ALTER TABLE keyed MODIFY at datetime(3)",
    "ALTER TABLE formed MODIFY data text, MODIFY words blob",
    "ALTER TABLE cased MODIFY NAME varchar(50)",
)
SINCE = (
    "UPDATE x SET v = 3",
    "UPDATE parted SET v = 200 WHERE id = 20",
    "INSERT INTO dropped VALUES (5, 5)",
    "UPDATE keyed SET v = 3",
    "UPDATE formed SET words = 'later'",
    "UPDATE cased SET name = 'c'",
)
LAST = ("UPDATE x SET v = 4", "DELETE FROM dropped", "UPDATE cased SET name = 'd'")


class Past:
    def __init__(self, spark: SparkSession, pipeline: Pipeline) -> None:
        self.spark, self.pipeline, self.db = spark, pipeline, pipeline.name

    def as_of(self, table: str, moment: datetime) -> list[tuple[Any, ...]]:
        """The same rows by both, or None where both refuse with the same reason."""
        found = History(self.spark, Lake(self.spark, self.pipeline), self.db, table).as_of(moment)
        rows = sorted(map(tuple, found.collect()), key=str)
        assert self.asked(f"SELECT * FROM {table}_as_of('{moment.isoformat()}')") == rows
        return rows

    def refused(self, table: str, moment: datetime) -> None:
        told = rf"history of {self.db}\.{table} begins 20"
        print(f"{table} as of {moment} is refused")
        with pytest.raises(LakeError, match=told):
            History(self.spark, Lake(self.spark, self.pipeline), self.db, table).as_of(moment)
        with pytest.raises(LakeReadError, match=told):
            self.asked(f"SELECT * FROM {table}_as_of('{moment.isoformat()}')")

    def versions(self, table: str, *columns: str) -> list[tuple[Any, ...]]:
        """Of each version these columns, and whether it has ended."""
        found = History(self.spark, Lake(self.spark, self.pipeline), self.db, table).versions()
        rows = [(*(row[name] for name in columns), row["valid_to"] is not None) for row in found.collect()]
        told = self.asked(f"SELECT {', '.join(columns)}, valid_to IS NOT NULL FROM {table}_history")
        assert sorted(rows, key=str) == told
        return told

    def asked(self, sql: str) -> list[tuple[Any, ...]]:
        return sorted(query(self.pipeline, sql).rows(), key=str)


@pytest.mark.soak  # two minutes each; the rule by itself: tests/spark/test_breaks.py
@pytest.mark.parametrize("kind", ["mysql", "mysql80", "mariadb"])
def test_no_past_is_told_over_a_statement_that_no_change_tells_of(
    spark: SparkSession,
    make: Callable[..., Streamer],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
) -> None:
    server: Database = request.getfixturevalue(kind)
    monkeypatch.setenv("TEST_PASSWORD", server.password)
    name = f"{NAME}{server.name}"
    streamer = make(name, mysql=server)
    run(server, *BEFORE, database=name)
    streamer.started()
    pipeline = load(streamer.file)

    def merged() -> None:
        """Everything up to now is in the lake."""
        streamer.wait_until_released()
        with suppress(JobFailedError):  # a table whose columns have other types waits for its snapshot
            compact(spark, pipeline)

    def moment() -> datetime:
        """At which nothing is written, nor for a moment around it."""
        merged()
        time.sleep(1.1)
        now = datetime.now(UTC)
        time.sleep(1.1)
        return now

    snapshot(spark, pipeline, [])
    run(server, *KNOWN, database=name)
    early = moment()
    run(server, *BREAKING, *SINCE, database=name)
    merged()
    snapshot(spark, pipeline, [])
    late = moment()
    run(server, *LAST, database=name)
    merged()

    past = Past(spark, pipeline)
    for table in ("parted", "dropped", "x", "keyed", "formed"):
        past.refused(table, early)
    assert past.as_of("parted", late) == [(20, 200), (21, 21)]
    assert past.as_of("dropped", late) == [(5, 5)]
    assert past.as_of("x", late) == [(1, 3)]
    assert past.as_of("formed", late) == [(1, "hello2", b"later")]
    assert past.as_of("cased", early) == [(1, "b")], "the name has other letters since, and is the same"
    assert past.as_of("cased", late) == [(1, "c")]

    open_ = {
        table: [row[:-1] for row in past.versions(table, "id", "v") if not row[-1]] for table in ("parted", "dropped")
    }
    assert open_ == {"parted": [(20, 200), (21, 21)], "dropped": []}
    assert past.versions("keyed", "v") == [(1, True), (2, True), (2, True), (3, False)]
    assert past.versions("cased", "NAME") == [("a", True), ("b", True), ("c", True), ("d", False)]
    told = past.versions("formed", "data", "words")
    assert (None, None, True) in told, "values of before have another form"
    assert [one for one in told if not one[-1]] == [("hello2", b"later", False)]
