"""A sample finds again the chunks of what checks before it found: by their keys, or as they were cut."""

from __future__ import annotations

from decimal import Decimal

from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from contract.pipeline_columns import Columns
from contract.schema import Column, TableSchema
from spark.lake.keys import key_json
from spark.proof.differences import CHUNK, MISSING, Difference
from spark.proof.known import chunks_of
from spark.proof.splits import Buckets, Ranges

ID = Column(name="id", type="bigint", unsigned=True, nullable=False)
CODE = Column(name="a code", type="varchar", length=9, nullable=False)
NUMBERED = TableSchema(db="d", table="t", columns=(ID, CODE), key=("id",))
CODED = TableSchema(db="d", table="t", columns=(ID, CODE), key=("a code", "id"))
RANGES = Ranges((ID,), [("5",), ("18446744073709551614",)])


def key(text: str) -> Difference:
    return Difference("d", "t", MISSING, text)


def chunk(where: str) -> Difference:
    return Difference("d", "t", CHUNK, source_where=where, lake_where=where)


def test_ranges(spark: SparkSession) -> None:
    def of(*found: Difference) -> set[int]:
        return {*chunks_of(spark, NUMBERED, RANGES, found)}

    assert of() == set()
    assert of(key('{"id":5}')) == {0}
    assert of(key('{"id":6}'), key('{"id":18446744073709551615}')) == {1, 2}
    assert of(chunk(RANGES.source_where([2])), key('{"id":5}')) == {0, 2}
    everything = {0, 1, 2}
    assert of(chunk("(`id` > 7)"), key('{"id":5}')) == everything, "it is cut otherwise now"
    assert of(key('{"code":"a"}')) == of(key('{"id":null}')) == of(key('{"id":"a"}')) == everything


def test_buckets(spark: SparkSession) -> None:
    split = Buckets(Columns().show(CODED), "mysql", 64)
    rows = spark.createDataFrame([("äbC", Decimal(7)), ("", Decimal(8))], "`a code` string, id decimal(20,0)")
    told = rows.select(fn.expr(split.number()).alias("n"), fn.expr(key_json(CODED)).alias("key")).collect()
    for row in told:
        assert chunks_of(spark, CODED, split, [key(row["key"])]) == {row["n"]}
    assert chunks_of(spark, CODED, split, [chunk(split.source_where([63]))]) == {63}
