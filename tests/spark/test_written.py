"""A merge writes by how much changed, and not by how large the table is."""

from __future__ import annotations

from pyspark.sql import SparkSession

from bench.written import measure
from spark.lake.lake import Lake

FEW, MANY = 200, 20_000


def test_bytes_grow_with_the_changes_and_not_with_the_table(spark: SparkSession, lake: Lake) -> None:
    small, large, whole = (
        *measure(spark, lake, [MANY], [FEW], "shop"),
        *measure(spark, lake, [20 * MANY], [FEW, MANY], "shop"),
    )
    assert large.table_bytes > 15 * small.table_bytes
    assert large.bytes < 1.5 * small.bytes
    assert whole.bytes > 10 * large.bytes
