"""Columns called as Spark or Delta call something of their own: their values arrive, and no other table waits."""

from __future__ import annotations

from typing import Any

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from contract.lake_columns import OF_MERGES
from contract.schema import Column, TableSchema
from spark.errors import chain
from spark.lake.delta_names import OF_VECTORS
from spark.lake.lake import Lake
from spark.merging.handoff import apply_ready
from spark.merging.tables import Merging
from spark.tables.rows import parsed
from spark.tables.schema import Schemas
from tests.spark.changes_by_hand import ITEMS, change, changes
from tests.spark.lake_by_hand import AT, item, seq, stage, unwatched

ID = Column(name="id", type="int", nullable=False)


def table(name: str, kind: str = "varchar", key: str = "id") -> TableSchema:
    """One with a column of this name, and a number called `v`."""
    columns = ID, Column(name=name, type=kind, length=9, nullable=False), Column(name="v", type="int")
    return TableSchema(db="shop", table=f"t{name.lower()}", version=1, columns=columns, key=(key,))


def rows(spark: SparkSession, lake: Lake, schema: TableSchema) -> list[tuple[Any, ...]]:
    frame = spark.read.format("delta").load(lake.table(schema.db, schema.table)).drop("_seq", "_ts")
    return sorted(map(tuple, frame.collect()))


def merging(spark: SparkSession, lake: Lake, *schemas: TableSchema) -> Merging:
    return Merging(spark, lake, Schemas([*schemas, ITEMS]), unwatched(lake))


@pytest.mark.parametrize(("kind", "values"), [("varchar", ("kept", "new")), ("int", (5, 6))])
def test_a_column_called_as_sparks_place_for_broken_texts_has_its_values(
    spark: SparkSession, lake: Lake, kind: str, values: tuple[Any, Any]
) -> None:
    schema, (old, new) = table("_corrupt_record", kind), values
    step = merging(spark, lake, schema)
    for n, value in ((1, old), (2, new)):
        row = {"id": 1, "_corrupt_record": value, "v": n}
        step._batch(changes(spark, change(seq(n), "c" if n == 1 else "u", row, schema)), n, "q")
    assert step.stopped.tables == {}
    assert rows(spark, lake, schema) == [(1, new, 2)]


def test_a_text_that_is_none_is_an_error_there_too(spark: SparkSession) -> None:
    texts = spark.createDataFrame([('{"id": 1, "_corrupt_record": ',)], "after string")
    with pytest.raises(Py4JJavaError) as failed:
        texts.select(parsed("after", table("_corrupt_record").columns)).collect()
    assert "MALFORMED_RECORD_IN_PARSING" in "\n".join(chain(failed.value))


def numbered(schema: TableSchema, n: int, value: str, v: int = 0) -> dict[str, Any]:
    return {"id": n, schema.columns[1].name: value, "v": v}


def merged(spark: SparkSession, lake: Lake, schema: TableSchema, at: int) -> list[tuple[Any, ...]]:
    """The rows behind an update, a delete and an insert: those that find rows marked as gone, and mark some."""
    step = merging(spark, lake, schema)
    news = [
        change(seq(at), "u", numbered(schema, 1, "a", at), schema),
        change(seq(at), "d", numbered(schema, 2, "b"), schema),
        change(seq(at), "c", numbered(schema, at, "n", at), schema),
    ]
    step._batch(changes(spark, *news), at, "q")
    assert step.stopped.tables == {}
    return rows(spark, lake, schema)


def vectors(spark: SparkSession, lake: Lake, schema: TableSchema) -> str:
    path = lake.table(schema.db, schema.table)
    [[properties]] = spark.sql(f"DESCRIBE DETAIL delta.`{path}`").select("properties").collect()
    return str(properties["delta.enableDeletionVectors"])


@pytest.mark.parametrize(
    "name", [*(pytest.param(one, marks=pytest.mark.soak) for one in sorted(OF_VECTORS)), "filePath"]
)
def test_a_name_that_delta_has_with_deletion_vectors_is_merged_without(
    spark: SparkSession, lake: Lake, name: str
) -> None:
    schema = table(name, key=name if name == "filePath" else "id")
    first = [change(seq(n), "c", numbered(schema, n, "ab"[n - 1]), schema) for n in (1, 2)]
    merging(spark, lake, schema)._batch(changes(spark, *first), 0, "q")
    assert merged(spark, lake, schema, 10) == [(1, "a", 10), (10, "n", 10)]
    assert vectors(spark, lake, schema) == "false"


@pytest.mark.parametrize("name", ["_metadata", pytest.param("filePath", marks=pytest.mark.soak)])
def test_such_a_column_may_come_later(spark: SparkSession, lake: Lake, name: str) -> None:
    """Of a table that has rows marked as gone."""
    later = table(name).model_copy(update={"version": 2})
    before = later.model_copy(update={"version": 1, "columns": (ID, later.columns[2])})
    first = [change(seq(n), "c", {"id": n, "v": n}, before) for n in (1, 2, 3)]
    for n, batch in enumerate([first, [change(seq(5), "d", {"id": 3}, before)]]):
        merging(spark, lake, before)._batch(changes(spark, *batch), n, "q")
    assert vectors(spark, lake, before) == "true"
    found = merging(spark, lake, before, later)
    news = [change(seq(6), "c", numbered(later, 6, "x", 6), later), change(seq(7), "u", numbered(later, 2, "b"), later)]
    found._batch(changes(spark, *news), 2, "q")
    assert found.stopped.tables == {}
    frame = spark.read.format("delta").load(lake.table("shop", later.table)).select("id", "v", name)
    assert sorted(map(tuple, frame.collect())) == [(1, 1, None), (2, 0, "b"), (6, 6, "x")]
    assert vectors(spark, lake, later) == "false"


@pytest.mark.soak
def test_a_snapshot_brings_such_a_column_too(spark: SparkSession, lake: Lake) -> None:
    """Made from the staged rows, and over a table that has deletion vectors."""
    schema = table("filePath")
    stage(spark, lake, "1", AT, numbered(schema, 1, "a"), numbered(schema, 2, "b"), of=schema)
    other = schema.model_copy(update={"table": "over", "version": 2})
    before = other.model_copy(update={"version": 1, "columns": (ID, other.columns[2])})
    merging(spark, lake, before)._batch(changes(spark, change(seq(1), "c", {"id": 1, "v": 1}, before)), 0, "q")
    assert vectors(spark, lake, other) == "true"
    stage(spark, lake, "2", AT, {"id": 1, "filePath": "a", "v": 0}, {"id": 2, "filePath": "b", "v": 0}, of=other)
    assert apply_ready(spark, lake).refused == {}
    for one in (schema, other):
        assert {row[0] for row in merged(spark, lake, one, AT + 10)} == {1, AT + 10}
        assert vectors(spark, lake, one) == "false"


def test_a_name_of_deltas_merge_stops_its_table_alone_and_is_told(spark: SparkSession, lake: Lake) -> None:
    schemas = [table(name) for name in sorted(OF_MERGES)]
    step = merging(spark, lake, *schemas)
    news = [change(seq(1), "c", numbered(schema, 1, "a"), schema) for schema in schemas]
    step._batch(changes(spark, *news, change(seq(1), "c", item(1))), 0, "q")
    told = {name: stop.reason for (_, name), stop in step.stopped.tables.items()}
    assert told == {
        schema.table: f"shop.{schema.table}: the lake cannot have a column named {schema.columns[1].name!r}. "
        "Rename it, leave it out (columns.exclude), or exclude the table; "
        "its changes wait in _changes meanwhile, and later runs try again"
        for schema in schemas
    }
    assert step.merged == {("shop", "items"): 1}


def test_a_table_that_spark_does_not_take_stops_alone(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the next version of Delta calls its own."""
    monkeypatch.setattr("contract.lake_columns.OF_MERGES", set())
    schema = table("_Row_Dropped_")
    step = merging(spark, lake, schema)
    for n in (1, 2):
        news = change(seq(n), "c", item(n)), change(seq(n), "u", numbered(schema, 1, "a", n), schema)
        step._batch(changes(spark, *news), n, "q")
    [(name, stop)] = step.stopped.tables.items()
    assert name == ("shop", schema.table)
    assert "`_row_dropped_` is ambiguous" in stop.reason
    assert "rename it, leave it out (columns.exclude), or exclude the table" in stop.reason
    assert step.merged[("shop", "items")] == 2
