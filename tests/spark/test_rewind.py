"""Whether a table's changes lead back to where a check began."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from contract.schema import Column, TableSchema
from contract.sequence import SPARK_TYPE
from spark.proof.rewind import Past
from spark.tables.rows import read_by
from tests.spark.changes_by_hand import ITEMS

LOW = (0, 1, 100)
IMAGES = f"key string, before string, after string, gtid string, schema int, _seq {SPARK_TYPE}"
CHANGE = f"op string, schema int, _seq {SPARK_TYPE}"


def shape(version: int, columns: int) -> TableSchema:
    return ITEMS.model_copy(update={"version": version, "columns": ITEMS.columns[:columns]})


@pytest.mark.parametrize(
    ("changes", "shapes", "told"),
    [
        ([("t", None, 90), ("u", 1, 200)], [shape(1, 3)], None),  # truncated before the check: it says nothing of it
        ([("t", None, 100)], [shape(1, 3)], "the table was truncated"),
        ([("u", 1, 200)], [shape(1, 3), shape(2, 2)], None),  # dropped, and no row changed since
        ([("u", 2, 200)], [shape(1, 3), shape(2, 2)], "a column of the table was dropped"),
        ([("u", 1, 200), ("u", 2, 300)], [shape(1, 2), shape(2, 3)], None),  # added: what changed before lacks it
    ],
)
def test_what_a_table_was_before_is_not_in_every_change(
    spark: SparkSession, changes: list[tuple[str, int | None, int]], shapes: list[TableSchema], told: str | None
) -> None:
    rows = [(op, version, (0, 1, pos, 0, 0)) for op, version, pos in changes]
    assert Past(spark.createDataFrame(rows, CHANGE), shapes, ITEMS, {}, LOW).lacks() == told


@pytest.mark.parametrize(
    ("versions", "changes", "read"),
    [
        (2, [1], [1, 2]),  # as few are not looked for
        (9, [3, 9, 3], [3, 9]),
        (9, [None], [9]),  # a truncation alone is by none
        (9, [], [9]),
    ],
)
def test_of_many_versions_those_are_read_that_a_change_is_by(
    spark: SparkSession, versions: int, changes: list[int | None], read: list[int]
) -> None:
    frame = spark.createDataFrame([("u", version, (0, 1, 200, 0, 0)) for version in changes], CHANGE)
    shapes = [shape(version, 3) for version in range(1, versions + 1)]
    assert [one.version for one in read_by(frame, shapes)] == read


@pytest.mark.parametrize(
    ("kind", "value", "lake", "told"),
    [
        ("date", '"2024-01-01"', "bigint", None),
        ("datetime", '"2024-01-01 10:00:00"', "bigint", None),
        ("int", "20240101", "date", None),
        ("bit", "true", "binary", None),
        ("point", '{"wkb":"AA==","srid":0}', "bigint", None),
        ("varchar", '"7"', "bigint", 7),
    ],
)
def test_values_of_a_type_that_the_lake_has_no_more(
    spark: SparkSession, kind: str, value: str, lake: str, told: int | None
) -> None:
    """Spark refuses some pairs of types before it has seen any row."""
    column = Column(name="x", type=kind, length=1, charset="utf8mb4" if kind == "varchar" else None)
    old = ITEMS.model_copy(update={"columns": (ITEMS.columns[0], column)})
    changes = spark.createDataFrame([("{}", None, f'{{"id":1,"x":{value}}}', "u:1", 1, (0, 1, 200, 0, 0))], IMAGES)
    images = Past(changes, [old], old, {"id": "bigint", "x": lake}, LOW).images(lambda image, _: [fn.col(f"{image}.x")])
    assert images is not None
    assert [row["x"] for row in images.collect()] == [told]
