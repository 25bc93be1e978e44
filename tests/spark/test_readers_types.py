"""Each type of the lake has the same values for each reader: the first and the last of it, and those that readers are
known to differ in."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from decimal import Decimal
from functools import reduce
from typing import Any

import polars as pl
import pytest
from deltalake import DeltaTable, QueryBuilder
from pyspark.sql import DataFrame, SparkSession

from contract.pipeline import Pipeline
from contract.schema import Column
from contract.status import LakeStatus, TableStatus
from contract.types import TABLE, of
from readers.lake import query
from spark.lake.lake import Lake
from spark.tables.schema import create

# As Spark's SQL writes them.
VALUES = {
    "bigint": ("-9223372036854775808", "9223372036854775807"),
    "decimal(20,0)": ("18446744073709551615", "0"),
    "decimal(10,0)": ("-9999999999", "9999999999"),
    "decimal(38,30)": ("-99999999.999999999999999999999999999999", "0.000000000000000000000000000001"),
    "float": ("float('0.1')", "float('-3.4028235E38')"),
    "double": ("double('-0.0')", "double('5e-324')", "double('1.7976931348623157E308')"),
    "string": ("''", "'NULL'", "'é😀 '", "'line\nand \"quote\"'"),
    "binary": ("X''", "X'00FF'"),
    "boolean": ("true", "false"),
    "date": ("DATE'0001-01-01'", "DATE'1582-10-10'", "DATE'9999-12-31'"),
    "timestamp_ntz": (
        "TIMESTAMP_NTZ'0001-01-01 00:00:00'", "TIMESTAMP_NTZ'1582-10-10 01:02:03.000004'",
        "TIMESTAMP_NTZ'2026-03-29 02:30:00'", "TIMESTAMP_NTZ'9999-12-31 23:59:59.999999'",
    ),
    "timestamp": ("TIMESTAMP'1970-01-01 00:00:01.000001Z'", "TIMESTAMP'2038-01-19 03:14:07.999999Z'"),
    "struct<wkb:binary,srid:bigint>": ("named_struct('wkb', X'0101', 'srid', 4326L)",),
    "array<float>": ("array(float('0.1'), float('-1'))", "array()"),
}  # fmt: skip
NAMES = {kind: re.sub(r"\W+", "_", kind) for kind in VALUES}
PLACE = "named_struct('epoch', 0L, 'file', 1L, 'pos', 1L, 'event', 1L, 'row', 1L)"


def test_no_type_of_the_lake_is_left_out() -> None:
    made = {of(Column(name="c", type=kind, length=1)).spark for kind in TABLE}
    wide = Column(name="c", type="decimal", precision=38, scale=30)
    assert made | {of(Column(name="c", type="bigint", unsigned=True)).spark, of(wide).spark} == set(VALUES)


def plain(value: Any, instant: bool = False) -> Any:
    """Told apart from others of another type or sign by its text. `instant`: Spark gives it in this machine's zone."""
    if isinstance(value, datetime):
        return f"{value.astimezone(UTC) if instant or value.tzinfo else value}"
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    if isinstance(value, list):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if hasattr(value, "asDict"):
        return plain(value.asDict())
    return str(value) if isinstance(value, Decimal) else repr(value)


def rows(found: list[dict[str, Any]], instant: str = "") -> list[dict[str, Any]]:
    made = [{name: plain(value, name == instant) for name, value in row.items()} for row in found]
    return sorted(made, key=lambda row: int(row["n"]))


def row(n: int) -> str:
    """SQL of the values of that number; NULL where a type has none."""
    shown = {kind: (values[n : n + 1] or ("null",))[0] if n >= 0 else "null" for kind, values in VALUES.items()}
    texts = ", ".join(f"CAST({text} AS {kind}) AS {NAMES[kind]}" for kind, text in shown.items())
    return f"SELECT {n}L AS n, {texts}, {PLACE} AS _seq, current_timestamp() AS _ts"


@pytest.fixture(params=["modern", "compatible"])
def pipeline(request: pytest.FixtureRequest, pipeline: Pipeline) -> Pipeline:
    return pipeline.model_copy(update={"lake": pipeline.lake.model_copy(update={"readers": request.param})})


@pytest.fixture
def lake(spark: SparkSession, pipeline: Pipeline) -> Lake:
    """With a table that has a row of NULLs, one of each value, and none that was deleted."""
    made = Lake(spark, pipeline)
    path = made.table("shop", "items")
    create(spark, path, {"n": "bigint", **{NAMES[kind]: kind for kind in VALUES}}, made.deletion_vectors)
    most = max(map(len, VALUES.values()))
    frames = [spark.sql(row(n)) for n in range(-1, most + 1)]
    reduce(DataFrame.union, frames).coalesce(1).write.format("delta").mode("append").save(path)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE n = {most}")
    table = TableStatus(db="shop", table="items", rows=most + 1, changes=0, version=made.version(path))
    status = LakeStatus(
        pipeline="shop", run=1, written_at=0, seconds=1, checkpoint=None, changes_version=0,
        tables={"shop.items": table},
    )  # fmt: skip
    made.write(made.status, status.model_dump(mode="json"))
    return made


def test_every_reader_has_the_values_of_spark(lake: Lake, pipeline: Pipeline) -> None:
    path, columns = lake.table("shop", "items"), ["n", *NAMES.values()]
    wanted = rows([row.asDict() for row in lake.frame(path).select(*columns).collect()], "timestamp")
    assert [int(row["n"]) for row in wanted] == [-1, 0, 1, 2, 3]
    for kind, values in VALUES.items():  # by Spark's own texts, so that all of them could not be wrong together
        alike = [f"(n = {n} AND {NAMES[kind]} = CAST({text} AS {kind}))" for n, text in enumerate(values)]
        assert lake.frame(path).where(" OR ".join(alike)).count() == len(values), kind
    table = DeltaTable(path)
    has_vectors = "deletionVectors" in (table.protocol().reader_features or [])
    assert has_vectors == (pipeline.lake.readers == "modern")
    answer = query(pipeline, "SELECT * FROM items")
    asked = QueryBuilder().register("t", table).execute("SELECT * FROM t").read_all()
    read = {
        "polars": pl.read_delta(path).select(columns).to_dicts(),
        "duckdb": [dict(zip(answer.columns, row, strict=True)) for row in answer.rows()],
        "delta-rs": pl.DataFrame(asked).select(columns).to_dicts(),
    }
    if not has_vectors:
        read["arrow"] = table.to_pyarrow_table(columns=columns).to_pylist()
    for reader, found in read.items():
        assert rows(found) == wanted, reader
