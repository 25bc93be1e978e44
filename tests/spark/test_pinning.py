"""Rows that differ, and their columns, while others change: rows of the source as they were at a commit, the lake as it
is some transactions later, and those transactions."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from contract.pipeline_columns import Columns
from contract.schema import TableSchema
from contract.sequence import SPARK_TYPE
from spark.proof import pinning, rewind
from spark.proof.answer import Answer, Opened
from spark.proof.boundary import Read
from spark.proof.folding import from_shown
from spark.proof.pinning import Pinning
from spark.proof.rewind import Past
from spark.proof.splits import Ranges
from tests.checkpoints import SOURCE
from tests.spark.changes_by_hand import ITEMS, compact_json

LOW, HIGH = (0, 1, 100), (0, 1, 900)
CHANGE = f"before string, after string, schema int, _seq {SPARK_TYPE}, gtid string, op string"
Row = tuple[int, str | None, str]


def rows(spark: SparkSession, *given: Row) -> DataFrame:
    frame = spark.createDataFrame([*given], "id bigint, name string, price string")
    return frame.withColumn("price", frame["price"].cast("decimal(10,2)"))


def change(number: int, before: Row | None, after: Row | None) -> tuple[Any, ...]:
    names = [column.name for column in ITEMS.columns]
    texts = [one and compact_json(dict(zip(names, one, strict=True))) for one in (before, after)]
    return *texts, 1, (0, 1, 100 * number, 0, 0), f"{SOURCE}:{number}", "u"


def found(
    spark: SparkSession, source: DataFrame, lake: DataFrame, *changes: tuple[Any, ...], seen: int = 1, chunks: int = 1,
    narrowed: bool = False,
) -> list[tuple[str, Any, tuple[str, ...]]]:  # fmt: skip
    """`seen`: the last transaction that the source showed for certain; `narrowed`: most of what it showed so is left
    out."""
    split = Ranges((ITEMS.columns[0],), [(str(100 * n),) for n in range(1, chunks)])
    answer = Answer(Columns().show(ITEMS), split, [])
    opened = Opened(answer, range(chunks), source, f"{SOURCE}:1-{seen}", HIGH)
    kinds = {column: kind for column, kind in lake.dtypes if not column.startswith("_")}
    past = Past(spark.createDataFrame([*changes], CHANGE), [with_version(1)], ITEMS, kinds, LOW)
    if narrowed:
        before, past = past, from_shown(past, Read({}, opened.seen, HIGH))
        assert past.low > before.low
    told = Pinning.of(opened, lake, past).differences()
    return [(one.kind, one.key or one.source_where, one.columns) for one in told]


def with_version(number: int) -> TableSchema:
    return ITEMS.model_copy(update={"version": number})


# The source shows transactions 2 and 3, which may have been told or not, and 4 comes after its read.
MEANWHILE = [
    change(2, (1, "a", "1"), (1, "b", "1")),
    change(3, None, (2, "new", "2")),
    change(4, (2, "new", "2"), (2, "later", "3")),
    change(9, (7, "x", "1"), None),
]


def test_what_changed_meanwhile_is_no_difference_and_the_rest_is_pinned(spark: SparkSession) -> None:
    source = rows(spark, (1, "b", "1"), (2, "new", "2"), (3, "c", "3"), (4, "d", "4"), (5, None, "5"), (7, "x", "1"))
    lake = rows(
        spark, (1, "b", "1"), (2, "later", "3"), (3, "c ", "3.01"), (5, "", "5"), (6, "e", "6"), (1, "b", "1")
    )  # fmt: skip
    assert found(spark, source, lake, *MEANWHILE) == [
        ("duplicate", '{"id":1}', ()),
        ("changed", '{"id":3}', ("name", "price")),
        ("missing", '{"id":4}', ()),
        ("changed", '{"id":5}', ("name",)),
        ("extra", '{"id":6}', ()),
    ]


def test_what_was_shown_for_certain_is_of_no_account(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rewind, "SPREAD", 1)
    source = rows(spark, (1, "b", "1"), (2, "new", "2"), (3, "c", "3"), (7, "x", "1"))
    lake = rows(spark, (1, "b", "1"), (2, "later", "3"), (3, "d", "3"))
    for seen in (2, 3):
        told = found(spark, source, lake, *MEANWHILE, seen=seen, narrowed=True)
        assert told == [("changed", '{"id":3}', ("name",))]
        assert told == found(spark, source, lake, *MEANWHILE, seen=seen)


def test_a_row_that_is_stale_by_its_last_change_is_told_with_its_column(spark: SparkSession) -> None:
    source = rows(spark, (1, "b", "1"), (2, "new", "2"))
    stale = rows(spark, (1, "a", "1"), (2, "later", "3"))
    assert found(spark, source, stale, *MEANWHILE[:3], seen=3) == [("changed", '{"id":1}', ("name",))]


def test_a_chunk_that_differs_too_much_keeps_no_other_from_being_told(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pinning, "ROWS", 3)
    source = rows(spark, *((n, "x", "1") for n in (1, 2, 3, 4, 150)))
    assert found(spark, source, rows(spark, (150, "y", "1")), chunks=2) == [
        ("chunk", "(((`id` <= 100)))", ()),
        ("changed", '{"id":150}', ("name",)),
    ]


def test_chunks_whose_rows_agree_have_no_difference(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    same = rows(spark, (1, "a", "1"))
    assert found(spark, same, same) == []
    monkeypatch.setattr(pinning, "ROWS", 1)
    source, lake = rows(spark, (1, "a", "1"), (150, "a", "1")), rows(spark, (1, "b", "1"), (150, "b", "1"))
    later = [change(2, (1, "a", "1"), (1, "b", "1")), change(3, (150, "a", "1"), (150, "b", "1"))]
    assert found(spark, source, lake, *later, chunks=2) == [], "each chunk by itself, since much has changed"


def test_one_whose_rows_agree_is_told_beside_one_that_differs_too_much(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their sums differed: something is wrong with the check itself."""
    monkeypatch.setattr(pinning, "ROWS", 3)
    source, lake = rows(spark, *((n, "x", "1") for n in (1, 2, 3, 4, 150))), rows(spark, (150, "x", "1"))
    told = [(kind, where) for kind, where, _ in found(spark, source, lake, chunks=2)]
    assert told == [("chunk", "(((`id` <= 100)))"), ("chunk", "(((`id` > 100)))")]
