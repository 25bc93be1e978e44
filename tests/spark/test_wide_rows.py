"""Tables of as many columns as InnoDB takes: expressions over all of them are no deeper than Spark's stack."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from contract.pipeline import Pipeline
from contract.schema import Column, TableSchema
from spark.kafka.records import opened
from spark.source import row_wires
from spark.tables.rows import lost, parsed

MOST = 1017  # columns of a table of InnoDB
DATES = tuple(Column(name=f"d{n}", type="date") for n in range(MOST - 1))
WIDE = TableSchema(
    db="shop", table="wide", columns=(Column(name="id", type="int", nullable=False), *DATES), key=("id",)
)


@pytest.mark.soak
def test_a_row_of_very_many_columns_is_read_from_the_source(
    spark: SparkSession, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    def selected(*given: object) -> DataFrame:
        """What the server answers: a row that has its key alone, and one of which a text was too long."""
        told = {"row_key": fn.lit('{"id":7}'), "nulls": fn.lit(MOST - 1) - fn.col("id"), "w0": fn.lit("7")}
        nothing = fn.lit(None).cast("string")
        asked = row_wires.columns_sql(pipeline.show(WIDE), "mysql")
        return spark.range(2).select(*[told.get(name, nothing).alias(name) for name in asked])

    monkeypatch.setattr(row_wires, "selected", selected)
    source: Any = SimpleNamespace(pipeline=pipeline, shown=pipeline.show)
    rows = row_wires.wires_of(spark, source, WIDE, ["1 = 1"])
    assert rows.limit(1).select("key", "_wire.id", f"_wire.d{MOST - 2}").collect() == [('{"id":7}', 7, None)]
    with pytest.raises(Exception, match="max_allowed_packet"):
        rows.select("_wire.id").collect()


def test_what_is_null_in_the_lake_is_counted_over_very_many_columns(spark: SparkSession) -> None:
    texts = spark.createDataFrame([('{"id":7,"d0":"2024-00-10","d5":"2024-01-10","d9":"0000-00-00"}',)], "after string")
    wires = texts.withColumn("_wire", parsed("after", WIDE.columns))
    assert wires.select(lost("_wire", WIDE).alias("n")).collect() == [(2,)]


def test_a_text_longer_than_spark_takes_by_itself_is_read(spark: SparkSession) -> None:
    """As a record, and as a row of one."""
    long = 20_000_001
    source = {"name": "n", "db": "d", "table": "t", "schema": 1, "gtid": "u:1", "ts_ms": 1, "seq": [0, 1, 2, 3, 4]}
    record = json.dumps({"op": "c", "after": "LONG", "source": source})
    whole = f"replace('{record}', 'LONG', repeat('x', {long} + cast(id as int)))"  # of no literal, or it is folded
    came = spark.range(1).selectExpr("cast('7' as binary) key", f"cast({whole} as binary) value", "'t' topic")
    came = came.withColumns({"partition": fn.lit(0), "offset": fn.lit(0)})
    assert opened(came).selectExpr("bad", "length(v.after)").collect() == [(False, long)]
    row = f"""replace('{{"id":7,"t":"LONG"}}', 'LONG', repeat('x', {long} + cast(id as int))) after"""
    columns = (Column(name="id", type="int"), Column(name="t", type="longtext"))
    wires = spark.range(1).selectExpr(row).select(parsed("after", columns).alias("w"))
    assert wires.selectExpr("length(w.t)").collect() == [(long,)]
