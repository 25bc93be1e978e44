"""Each way in which a table's definition changes, on a real server: its lines, its row, what becomes of the table, and
that the table is the source's again when what it says was done."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from stack.database import Database
from stack.kafka import Kafka
from tests.integration.decoding import run
from tests.integration.evolution_cases import (
    AGAIN,
    CARRIED,
    CASES,
    COMPUTED,
    PARTS,
    SAME_WAY,
    SINGLE,
    STALE,
    STOPPED,
    TABLE,
    WALKED,
    Case,
)
from tests.integration.streaming import Streamer


@pytest.fixture
def streamer(
    server: Database, kafka: Kafka, names: Sequence[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Streamer]:
    monkeypatch.setenv("TEST_PASSWORD", server.password)
    name = f"evolving{server.name}{len(names)}"  # the topics are of one Kafka
    run(server, f"CREATE DATABASE {name}")
    made = Streamer(tmp_path, server, kafka, name)
    yield made
    made.close()


def source(server: Database, db: str, table: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """The names of the columns, and the rows."""
    with server.connect(database=db) as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT * FROM {table}")
        return [column[0] for column in cursor.description], sorted(cursor.fetchall())


def in_lake(spark: SparkSession, pipeline: Pipeline, table: str, columns: list[str]) -> list[tuple[Any, ...]]:
    rows = spark.read.format("delta").load(Lake(spark, pipeline).table(pipeline.name, table)).select(*columns)
    return sorted(tuple(row) for row in rows.collect())


def assert_same(spark: SparkSession, server: Database, pipeline: Pipeline, table: str) -> None:
    columns, wanted = source(server, pipeline.name, table)
    assert in_lake(spark, pipeline, table, columns) == wanted, table


def becomes(pipeline: Pipeline, table: str) -> str:
    found = status.read(pipeline)
    assert found is not None
    known = found.tables[f"{pipeline.name}.{table}"]
    return STOPPED if known.stopped else STALE if known.stale else CARRIED


def assert_told(pipeline: Pipeline, report: dict[str, Any], name: str, case: Case) -> None:
    """Its lines and no other; and the job that mends it, in the report and in the status."""
    table = f"{pipeline.name}.{name}"
    said = {line.removeprefix(f"{table}: ") for line in report["schema_changes"] if line.startswith(f"{table}: ")}
    assert said == case.said(name), name
    assert becomes(pipeline, name) == case.becomes, name
    reason = report["tables"][table]["stopped" if case.becomes == STOPPED else "stale"]
    if case.becomes == CARRIED:
        assert reason is None, name
        return
    assert AGAIN in reason, name
    if case.becomes == STALE:
        first = next(line for line in case.lines if "TABLE" in line).format(t=name)
        assert f"): {first}. To mend it, {AGAIN}" in reason


@pytest.mark.soak_on("mysql80", "mariadb")
@pytest.mark.parametrize("names", [WALKED, pytest.param(SINGLE, marks=pytest.mark.soak)], ids=["walked", "all"])
def test_each_change_has_its_rule_its_line_and_its_row_and_a_way_back(
    spark: SparkSession, server: Database, streamer: Streamer, names: Sequence[str]
) -> None:
    db = streamer.name
    cases = {name: CASES[name] for name in names}
    for name in cases:
        made = TABLE.format(name)[:-1] + {"parts": ")" + PARTS, "computed": COMPUTED}.get(name, ")")
        run(server, made, f"INSERT INTO {name} (id, a, b, e) VALUES (1, 1, 'b', 'x'), (2, 2, 'c', 'y')", database=db)
    streamer.started()
    pipeline = load(streamer.file)
    snapshot(spark, pipeline, [])
    compact(spark, pipeline)
    # Of a table of which nothing was streamed yet the schema topic has no shape to compare with.
    run(server, *(f"UPDATE {name} SET a = 0 WHERE id = 2" for name in cases), database=db)
    for name, case in cases.items():
        run(server, *(statement.format(t=name) for statement in case.statements), database=db)
    streamer.wait_until_released()
    with pytest.raises(JobFailedError, match=f"^1 table stopped, the others are complete: {db}.retyped: ") as caught:
        compact(spark, pipeline)
    rows = spark.read.format("delta").load(Lake(spark, pipeline).at("_schema_changes"))
    noted = {(row["tbl"], row["kind"], row["rule"]) for row in rows.collect()}
    for name, case in cases.items():
        assert_told(pipeline, caught.value.facts, name, case)
        assert {(name, *note) for note in case.notes} <= noted
        if case.becomes == CARRIED:
            assert_same(spark, server, pipeline, name)
    left = SAME_WAY if names == WALKED else ()
    back = [case.now.format(t=name) for name, case in cases.items() if case.becomes != CARRIED and name not in left]
    back = [name for name in back if name]
    snapshot(spark, pipeline, [f"{db}.{name}" for name in back])
    compact(spark, pipeline)
    for name in back:
        assert_same(spark, server, pipeline, name)
        assert becomes(pipeline, name) == CARRIED, name
