"""Keys of many bytes: the lake spells one as records do, whatever Spark's own way with base64 is."""

from __future__ import annotations

import base64

from pyspark.sql import SparkSession

from contract.schema import Column, TableSchema
from spark.lake.erasures import Begun, Erased, Erasures
from spark.lake.keys import key_json
from spark.lake.lake import Lake
from tests.spark.changes_by_hand import compact_json
from tests.spark.lake_by_hand import AT, checkpoint

LONG = TableSchema(
    db="shop", table="blobs", columns=(Column(name="k", type="varbinary", length=200, nullable=False),), key=("k",)
)
ROWS = [bytes(range(150)), b"short"]
TEXTS = [compact_json({"k": base64.b64encode(row).decode()}) for row in ROWS]


def test_it_is_spelled_in_one_line(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(bytearray(row),) for row in ROWS], "k binary")
    assert [row[0] for row in rows.selectExpr(key_json(LONG)).collect()] == TEXTS


def test_an_erased_row_is_not_taken_from_a_snapshot_that_was_read_before(spark: SparkSession, lake: Lake) -> None:
    erasures, until = Erasures(lake), checkpoint(AT)
    hash = erasures.hash_of("shop.blobs", TEXTS[0])
    gone = Erased(tbl="shop.blobs", hash=hash, until=until.place, gtid_set=until.gtid_set)
    erasures.end(erasures.begin(Begun(id="x", tbl="shop.blobs", hashes=[hash]), [gone]))
    staged = spark.createDataFrame([(bytearray(row),) for row in ROWS], "k binary")
    left = Erasures(lake).unstaged(staged, LONG, [*until.place, -1, -1], 0)
    assert [bytes(row["k"]) for row in left.collect()] == ROWS[1:]
