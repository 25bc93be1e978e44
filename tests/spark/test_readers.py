"""Spark, Polars, delta-rs and DuckDB read the same rows; `headrace sql` says of the past what Spark does."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from deltalake import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from contract.pipeline import Pipeline
from contract.status import LakeStatus, TableStatus
from readers.delta import stream
from readers.lake import Answer, query
from spark.history.history import History
from spark.lake.lake import Lake
from spark.tables.merge import as_rows, merge
from spark.tables.schema import prepare
from tests.spark.changes_by_hand import ITEMS, change, changes
from tests.spark.test_history import at, make


@pytest.fixture
def history(spark: SparkSession, lake: Lake) -> History:
    """A row of the table is deleted by a deletion vector, and the lake has a status."""
    made = make(spark, lake)
    path = lake.table("shop", "items")
    spark.sql(f"ALTER TABLE delta.`{path}` SET TBLPROPERTIES ('delta.enableDeletionVectors' = 'true')")
    more = spark.read.format("delta").load(path).where("id = 4")
    more.selectExpr("id + 100 AS id", "* EXCEPT (id)").write.format("delta").mode("append").save(path)
    spark.read.format("delta").load(path).coalesce(1).write.format("delta").mode("overwrite").save(path)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 104")
    table = TableStatus(db="shop", table="items", rows=2, changes=5, version=lake.version(path))
    status = LakeStatus(
        pipeline="shop",
        run=1,
        written_at=0,
        seconds=1,
        checkpoint=None,
        changes_version=0,
        tables={"shop.items": table},
    )
    lake.write(lake.status, status.model_dump(mode="json"))
    return made


PAGE = Path(__file__).parents[2] / "docs" / "readers.md"


def plain(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    def value(one: Any) -> Any:
        if isinstance(one, datetime):
            return one.astimezone(UTC)  # Spark gives the time of this machine, without its zone
        return bytes(one) if isinstance(one, (bytes, bytearray)) else one

    return sorted((tuple(value(one) for one in row.values()) for row in rows), key=repr)


def of_spark(rows: DataFrame) -> list[tuple[Any, ...]]:
    return plain([row.asDict() for row in rows.collect()])


def of_duckdb(found: Answer) -> list[tuple[Any, ...]]:
    return plain([dict(zip(found.columns, row, strict=True)) for row in found.rows()])


def test_every_reader_has_the_rows_of_spark(lake: Lake, pipeline: Pipeline, history: History) -> None:
    path, own = lake.table("shop", "items"), ["_seq", "_ts"]
    wanted = of_spark(history.now())
    assert {row[0] for row in wanted} == {1, 4}
    assert any(action for action in DeltaTable(path).deletion_vectors().read_all()["filepath"]), "there is one to mind"
    assert plain(pl.read_delta(path).drop(own).to_dicts()) == wanted
    assert plain(pl.DataFrame(stream(path)).drop(own).to_dicts()) == wanted
    assert of_duckdb(query(pipeline, "SELECT * FROM items")) == wanted
    assert of_duckdb(query(pipeline, "SELECT * FROM shop.items")) == wanted


def test_a_metastore_names_the_tables_by_the_pages_sql(
    spark: SparkSession, lake: Lake, history: History, request: pytest.FixtureRequest
) -> None:
    """In the session's own catalog; Trino's statement is not tried."""
    section = PAGE.read_text().split("## A metastore\n")[1].split("\n## ")[0]
    statements = (
        section.split("```sql\n")[1].split("```")[0].replace("/lake/shop", lake.root).replace("orders", "items")
    )
    request.addfinalizer(lambda: spark.sql("DROP DATABASE IF EXISTS shop CASCADE"))
    for statement in filter(None, map(str.strip, statements.split(";"))):
        spark.sql(statement)
    assert of_spark(spark.sql("SELECT * EXCEPT (_seq, _ts) FROM shop.items")) == of_spark(history.now())
    assert spark.sql("SELECT DISTINCT tbl FROM shop.all_changes").collect()[0]["tbl"] == "shop.items"
    spark.sql("DROP TABLE shop.items")
    assert lake.is_table(lake.table("shop", "items")), "the name went, and not the table"


def test_the_past_is_the_same_without_spark(pipeline: Pipeline, history: History) -> None:
    for minute in (10, 25, 30, 45, 59):
        found = query(pipeline, f"SELECT * FROM items_as_of('{at(minute).isoformat()}')")
        assert of_duckdb(found) == of_spark(history.as_of(at(minute))), minute
    assert of_duckdb(query(pipeline, "SELECT * FROM items_history")) == of_spark(history.versions())
    told = query(pipeline, "SELECT gtid, op, changed, key, after.name FROM items_changes").rows()
    wanted = history.changes().select("gtid", "op", "changed", "key", "after.name").collect()
    assert list(told) == [tuple(row) for row in wanted]


def test_a_compatible_table_has_no_deletion_vectors_and_every_reader_reads_it(
    spark: SparkSession, pipeline: Pipeline
) -> None:
    """Those that refuse deletion vectors too, such as Arrow's datasets."""
    found = {}
    for readers in ("modern", "compatible"):
        changed = pipeline.lake.model_copy(update={"readers": readers})
        lake = Lake(spark, pipeline.model_copy(update={"lake": changed, "name": readers}))
        path = lake.table("shop", "items")
        columns = prepare(spark, path, ITEMS, ITEMS, lake.deletion_vectors)
        for place, rows in ((1, [(1, "c"), (2, "c"), (3, "c")]), (2, [(2, "d"), (3, "u")])):
            given = [change((0, 1, place, 0, n), op, {"id": n, "name": op, "price": "1"}) for n, op in rows]
            merge(spark, path, as_rows(changes(spark, *given), ITEMS, columns), ITEMS.key, list(columns))
        found[readers] = path
    refused = DeltaTable(found["modern"])
    with pytest.raises(Exception, match=r"[Dd]eletion"):
        refused.to_pyarrow_dataset()
    table = DeltaTable(found["compatible"]).to_pyarrow_table(columns=["id", "name"])
    assert sorted(zip(*table.to_pydict().values(), strict=True)) == [(1, "c"), (3, "u")]
