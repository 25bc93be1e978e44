"""CHECK constraints as each server keeps them: asked for with the streamer's rights, and looked at in the lake."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from contract import types
from contract.pipeline import Pipeline
from contract.schema import TableSchema
from quality import suite
from spark.source.source import Source
from stack.database import Database
from tests.integration.decoding import pipeline as pipeline_of
from tests.integration.decoding import run

# Constraint -> its condition, and what of the good row breaks it.
LOOKED_AT = {
    "one": ("(a IS NULL) + (b IS NULL) = 1", {"b": 5}),
    "other": ("NOT (a <=> b)", {"a": None}),
    "some": ("a OR b", {"a": 0, "b": 0}),
    "few": ("a < 10 AND n BETWEEN 0 AND 99.5", {"n": "99.51"}),
    "least": ("u - 5 > -5", {"u": 0}),
    "chosen": ("a IN (1, 2, -3) OR a IS NULL", {"a": 4}),
    "order": ("until IS NULL OR until >= since", {"until": "2024-01-01"}),
    "recent": ("since > '2020-01-01'", {"since": "2020-01-01"}),
    "long": ("CHAR_LENGTH(name) > 2", {"name": "ab"}),
    "year": ("y >= 2000", {"y": 1999}),
}
TOLD = {
    "number": "since > 20200101",
    "text": "name <> 'none'",
    "half": "a DIV 2 < 5",
    "like": "name NOT LIKE 'x%'",
    "there": "since IS NOT NULL",
}
GOOD: dict[str, Any] = {
    "id": 1, "a": 1, "b": None, "u": 9, "n": "1.50", "since": "2024-01-02", "until": None, "name": "größ", "y": 2024,
}  # fmt: skip


def made(server: Database, name: str) -> Pipeline:
    checks = {key: clause for key, (clause, _) in LOOKED_AT.items()} | TOLD
    listed = ", ".join(f"CONSTRAINT `{key}` CHECK ({clause})" for key, clause in checks.items())
    columns = "id int PRIMARY KEY, a int, b bigint, u int unsigned, n decimal(10,2), since date, until date"
    values = ", ".join("NULL" if value is None else f"'{value}'" for value in GOOD.values())
    same = "few" if server.name == "mariadb" else "more"
    run(server, f"DROP DATABASE IF EXISTS {name}", f"CREATE DATABASE {name}")
    run(
        server, "SET NAMES utf8mb4", f"CREATE TABLE t ({columns}, name varchar(20), y year, {listed})",
        # Another table's, of the same names where the server has them by table.
        f"CREATE TABLE other (id int PRIMARY KEY, CONSTRAINT {same} CHECK (id > 7))",
        f"INSERT INTO t VALUES ({values})", database=name,
    )  # fmt: skip
    return pipeline_of(server, include=f"{name}.*")


def looked_at(
    spark: SparkSession, pipeline: Pipeline, schema: TableSchema, checks: dict[str, str], rows: DataFrame
) -> dict[str, Any]:
    name = f"{schema.db}.{schema.table}"
    results = {name: {"equal": True, "frame_rows": None}}
    given: dict[str, Any] = {"schemas": {name: schema}, "frames": {name: rows}, "constraints": {name: checks}}
    found: dict[str, Any] = suite.run(spark, pipeline, results, **given)["tables"][name]
    return found


def frame(spark: SparkSession, schema: TableSchema, **changed: Any) -> DataFrame:
    row = {name: None if value is None else str(value) for name, value in (GOOD | changed).items()}
    texts = spark.createDataFrame([row], ", ".join(f"{name} string" for name in row))
    return texts.selectExpr(*[f"cast({c.name} as {types.of(c).spark}) as {c.name}" for c in schema.columns])


def test_a_row_that_breaks_one_in_the_lake_alone_is_found_and_an_equal_table_holds_all(
    spark: SparkSession, server: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_QUALITY", str(tmp_path))
    pipeline = made(server, f"constraints{server.name}")
    with Source(pipeline) as source:
        schema = source.schema(f"constraints{server.name}", "t")
        checks = source.checks(f"constraints{server.name}", "t")
    assert schema is not None
    if server.name == "mysql80":
        assert checks == {}, "before 8.0.16 a CHECK was read and forgotten"
        return
    assert {*checks} == {*LOOKED_AT, *TOLD}
    good = looked_at(spark, pipeline, schema, checks, frame(spark, schema))
    assert (good["failed"], {*good["untranslated"]}) == ([], {f"CHECK {name}" for name in TOLD})
    for name, (_, changed) in LOOKED_AT.items():
        bad = looked_at(spark, pipeline, schema, {name: checks[name]}, frame(spark, schema, **changed))
        assert [one["expectation"] for one in bad["failed"]] == [f"CHECK {name}"]


def test_mariadbs_column_may_have_one_of_its_own_beside_the_tables(mariadb: Database) -> None:
    run(mariadb, "DROP DATABASE IF EXISTS twice", "CREATE DATABASE twice")
    run(
        mariadb,
        "CREATE TABLE t (id int PRIMARY KEY, a int CHECK (a > 1), CONSTRAINT a CHECK (a < 9))",
        database="twice",
    )
    with Source(pipeline_of(mariadb, include="twice.*")) as source:
        assert source.checks("twice", "t") == {"a": "`a` < 9", "a, of the column": "`a` > 1"}
