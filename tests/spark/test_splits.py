"""Chunks: every row is in one, the same by condition and by number, and keys have one text."""

from __future__ import annotations

import json

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from contract.pipeline_columns import Columns
from contract.schema import Column, TableSchema
from spark.lake.keys import key_json
from spark.proof.splits import Buckets, Ranges, again, split_of
from spark.tables.rows import parsed, typed
from streamer.protocol.values.text import escape

ID = Column(name="id", type="bigint", unsigned=True, nullable=False)
N = Column(name="at", type="int", nullable=False)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 7, 8])
def test_a_number_is_how_many_boundaries_are_below_the_key(spark: SparkSession, count: int) -> None:
    split = Ranges((N,), [(str(n * 10 - 20),) for n in range(count)])
    rows = spark.range(-30, 70).select(fn.col("id").alias("at"))
    assert split.count == count + 1
    for number in range(split.count):
        inside = rows.where(split.lake_where([number]))
        assert {row[0] for row in inside.select(fn.expr(split.number())).distinct().collect()} == {number}
    assert rows.where(split.lake_where(range(split.count))).count() == 100


def test_composite_and_unsigned_keys(spark: SparkSession) -> None:
    split = Ranges((ID, N), [("5", "-3"), ("5", "9"), ("18446744073709551614", "0")])
    rows = spark.sql(
        "SELECT cast(id as decimal(20,0)) id, cast(at as bigint) at, want FROM VALUES (1, 100, 0), (5, -3, 0),"
        " (5, -2, 1), (5, 10, 2), (6, -9, 2), (18446744073709551614, 0, 2), (18446744073709551614, 1, 3),"
        " (18446744073709551615, -5, 3) AS t(id, at, want)"
    )
    inside = rows.select(fn.struct("id", "at").alias("row"), "want")
    told = [tuple(row) for row in inside.select(fn.expr(split.number("row")), "want").collect()]
    assert all(number == want for number, want in told)
    assert rows.where(split.lake_where([2])).count() == 3
    assert again(Columns().show(TableSchema(db="d", table="t", columns=(ID, N), key=("id", "at"))), "mysql",
                 json.loads(json.dumps(split.kept()))) == split  # fmt: skip


def test_ranges_may_be_of_the_keys_first_columns_and_each_has_a_condition_of_its_own(spark: SparkSession) -> None:
    shown = Columns().show(TableSchema(db="d", table="t", columns=(ID, N), key=("id", "at")))
    split = again(shown, "mysql", {"boundaries": [["5"], ["9"]]})
    assert [f"({split.source_where([n])})" for n in range(3)] == [f"({one})" for one in split.source_wheres()]
    rows = spark.sql("SELECT cast(id as decimal(20,0)) id, 0L at FROM VALUES (5), (6), (9), (10) AS t(id)")
    told = rows.select(fn.expr(split.number()).alias("n")).collect()
    assert [row["n"] for row in told] == [0, 1, 1, 2]
    assert [rows.where(split.lake_where([n])).count() for n in range(3)] == [1, 2, 1]


def test_a_row_without_a_key_is_in_the_first_chunk(spark: SparkSession) -> None:
    """Of somebody else: the source has none, and a repair of the chunk takes it away."""
    rows = spark.sql("SELECT cast(id as decimal(20,0)) id, at FROM VALUES (null, 1L), (7, null), (9, 9L) AS t(id, at)")
    split = Ranges((ID, N), [("5", "5"), ("8", "8")])
    assert [row[0] for row in rows.select(fn.expr(split.number())).collect()] == [0, 0, 2]
    assert [rows.where(split.lake_where([n])).count() for n in range(3)] == [2, 0, 1]
    assert " null" not in split.source_where([0])


def test_only_integers_are_split_by_ranges() -> None:
    def ask(sql: str, *arguments: object) -> tuple[int] | None:
        return (900,) if "table_rows" in sql else None

    text = Column(name="code", type="varchar", length=9, nullable=False)
    by_code = Columns().show(TableSchema(db="d", table="t", columns=(ID, text), key=("code", "id")))
    assert split_of(by_code, "mysql", 100, ask) == Buckets(by_code, "mysql", 10)
    by_id = Columns().show(TableSchema(db="d", table="t", columns=(ID, text), key=("id",)))
    assert split_of(by_id, "mysql", 100, ask) == Ranges((ID,), [])
    without = Columns().show(TableSchema(db="d", table="t", columns=(ID, text)))
    assert split_of(without, "mysql", 100, ask).count == 1


KEYS = {
    "bigint": ({"unsigned": True}, 18446744073709551615),
    "decimal": ({"precision": 10, "scale": 2}, "-0.50"),
    "varchar": ({"length": 20}, 'quo"te \\ größe\n '),
    "varbinary": ({"length": 9}, "AP8="),
    "date": ({}, "2024-02-29"),
    "datetime": ({"fsp": 3}, "2024-02-29 23:59:59.100"),
    "timestamp": ({"fsp": 6}, "2024-02-29T23:59:59.000010Z"),
    "time": ({"fsp": 1}, "-838:59:59.0"),
    "bit": ({"length": 9}, "AQE="),
    "enum": ({"members": ("a", "b")}, "b"),
}


def test_a_key_has_the_text_that_its_records_have(spark: SparkSession) -> None:
    columns = tuple(Column(name=kind, type=kind, nullable=False, **facts) for kind, (facts, _) in KEYS.items())
    schema = TableSchema(db="d", table="t", columns=columns, key=tuple(KEYS))
    wire = {kind: value for kind, (_, value) in KEYS.items()}
    rows = spark.createDataFrame([(json.dumps(wire),)], "after string")
    rows = rows.withColumn("_wire", parsed("after", columns)).select(*typed("_wire", schema))
    found = rows.select(fn.expr(key_json(schema)).alias("k")).first()
    assert found is not None
    assert json.loads(found["k"]) == wire
    inside = rows.select(fn.struct("*").alias("row")).select(fn.expr(key_json(schema, "row")).alias("k")).first()
    assert inside is not None
    assert inside["k"] == found["k"]


def test_a_key_of_any_characters_is_spelled_as_records_spell_it(spark: SparkSession) -> None:
    """An erasure, and a repair, know a row by this text."""
    odd = [
        "\\u000B",
        "\\\\u001F",
        "\\\u001f\u001f",
        "\u000b\\u001F\u001e",
        "/",
        "\u2028",
        "\ufeff",
        "\ud7ff",
        "😀",
        "</b>",
    ]
    texts = [*map(chr, range(0x100)), *odd]
    code = Column(name="c", type="varchar", nullable=False, length=9)
    schema = TableSchema(db="d", table="t", columns=(code,), key=("c",))
    rows = spark.createDataFrame([(text,) for text in texts], "c string")
    found = {row["c"]: row["k"] for row in rows.select("c", fn.expr(key_json(schema)).alias("k")).collect()}
    assert found == {text: f'{{"c":"{escape(text.encode()).decode()}"}}' for text in texts}
