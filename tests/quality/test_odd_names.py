"""Names that a formatter, or a file's name, takes for its own."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract.pipeline import Pipeline
from contract.schema import Column, TableSchema
from quality import suite
from tests.quality.test_suite import pipeline  # noqa: F401

COLUMNS = (Column(name="id", type="int", nullable=False), Column(name="a{b}", type="int"))
CHECK = {"positive": "(`a{b}` > 0)"}
TABLES = ("a/b", "é" * 64, "..", "a%s:b*?")


@pytest.mark.parametrize(("tables", "value", "failed"), [(TABLES, 2, []), (("plain",), 0, ["CHECK positive"])])
def test_tables_and_constraints(
    spark: SparkSession,
    pipeline: Pipeline,  # noqa: F811
    tables: tuple[str, ...],
    value: int,
    failed: list[str],
) -> None:
    frame = spark.createDataFrame([(1, value)], "id bigint, `a{b}` bigint")
    given: dict[str, Any] = {"schemas": {}, "frames": {}, "constraints": {}}
    for table in tables:
        schema = TableSchema(db="shop", table=table, version=1, key=("id",), columns=COLUMNS)
        of = {"schemas": schema, "frames": frame, "constraints": CHECK}
        for what, one in of.items():
            given[what][f"shop.{table}"] = one
    found = suite.run(spark, pipeline, {name: {"source_count": 1} for name in given["schemas"]}, **given)
    assert {name: [one["expectation"] for one in told["failed"]] for name, told in found["tables"].items()} == {
        f"shop.{table}": failed for table in tables
    }
