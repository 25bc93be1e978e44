"""Audit: names that a formatter, or a file's name, takes for its own."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract.pipeline import Pipeline
from contract.schema import Column, TableSchema
from quality import suite
from tests.quality.test_suite import pipeline  # noqa: F401

COLUMNS = (Column(name="id", type="int", nullable=False), Column(name="a{b}", type="int"))


def judged(spark: SparkSession, pipeline: Pipeline, table: str, clause: str) -> Any:
    schema = TableSchema(db="shop", table=table, version=1, key=("id",), columns=COLUMNS)
    frame = spark.createDataFrame([(1, 2)], "id bigint, `a{b}` bigint")
    name = f"shop.{table}"
    found = suite.run(
        spark, pipeline, {name: {"source_count": 1, "equal": True}}, schemas={name: schema}, frames={name: frame},
        constraints={name: {"positive": clause}},
    )
    return found["tables"][name]


@pytest.mark.parametrize("table", ["plain", "a/b", "a b", "é" * 64, "..", "a:b*?", "a%s"])
def test_names_of_tables(spark: SparkSession, pipeline: Pipeline, table: str) -> None:  # noqa: F811
    found = judged(spark, pipeline, table, "(`id` > 0)")
    assert (found["ok"], found["failed"]) == (True, [])


def test_braces_in_a_constraint(spark: SparkSession, pipeline: Pipeline) -> None:  # noqa: F811
    found = judged(spark, pipeline, "plain", "(`a{b}` > 0)")
    assert (found["ok"], found["failed"]) == (True, [])
