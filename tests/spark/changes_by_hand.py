"""Changes as the streamer sends them, and as `_changes` has them, written short."""

from __future__ import annotations

import json
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from contract.schema import Column, TableSchema
from contract.sequence import SPARK_TYPE

RECORD = "key binary, value binary, topic string, partition int, offset bigint"
CHANGE = f"db string, tbl string, key string, op string, after string, schema int, _seq {SPARK_TYPE}, ts timestamp"
Row = dict[str, Any] | None

ITEMS = TableSchema(
    db="shop",
    table="items",
    version=1,
    columns=(
        Column(name="id", type="int", nullable=False),
        Column(name="name", type="varchar", length=20),
        Column(name="price", type="decimal", precision=10, scale=2),
    ),
    key=("id",),
)
LINES = TableSchema(
    db="shop",
    table="lines",
    version=1,
    columns=(
        Column(name="region", type="varchar", length=5, nullable=False),
        Column(name="n", type="bigint", unsigned=True, nullable=False),
        Column(name="qty", type="int"),
    ),
    key=("region", "n"),
)


def compact_json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def key_of(schema: TableSchema, row: dict[str, Any]) -> str:
    return compact_json({name: row[name] for name in schema.key})


def record(
    offset: int,
    seq: tuple[int, ...],
    op: str,
    after: Row,
    before: Row = None,
    schema: TableSchema = ITEMS,
    partition: int = 0,
    pipeline: str = "shop",
    ts_ms: int = 1_700_000_000_000,
) -> tuple[Any, ...]:
    """A Kafka record: key, value, topic, partition, offset."""
    row = after or before
    assert row is not None
    source = {
        "name": pipeline, "db": schema.db, "table": schema.table, "schema": schema.version, "gtid": f"u:{seq[2]}",
        "ts_ms": ts_ms, "seq": list(seq),
    }  # fmt: skip
    value = compact_json({"before": before, "after": after, "source": source, "op": op})
    return key_of(schema, row).encode(), value.encode(), f"shop.shop.{schema.table}", partition, offset


def records(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    return spark.createDataFrame(list(rows), RECORD)


def change(seq: tuple[int, ...], op: str, row: dict[str, Any], schema: TableSchema = ITEMS) -> tuple[Any, ...]:
    """A row of `_changes`, as far as step 2 reads it."""
    import datetime

    after = None if op == "d" else compact_json(row)
    at = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
    return schema.db, f"{schema.db}.{schema.table}", key_of(schema, row), op, after, schema.version, seq, at


def truncation(seq: tuple[int, ...], schema: TableSchema = ITEMS) -> tuple[Any, ...]:
    """A TRUNCATE as `_changes` has it."""
    made = list(change(seq, "d", dict.fromkeys(schema.key, 0), schema))
    made[2:4] = None, "t"
    return tuple(made)


def changes(spark: SparkSession, *rows: tuple[Any, ...]) -> DataFrame:
    return spark.createDataFrame(list(rows), CHANGE)
