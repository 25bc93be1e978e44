"""Chunks hold every row once, whatever the key, and say so in conditions that use the index."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import Sequence
from typing import Any

import pytest

from contract.schema import Column, TableSchema
from spark.source.chunks import Boundary, boundary_sql, conditions, literal, sorted_alike, walk, walked

PAIR = TableSchema(
    db="shop", table="t", columns=(Column(name="a", type="int"), Column(name="b", type="int")), key=("a", "b")
)
TEXT = TableSchema(db="shop", table="t", columns=(Column(name="na`me", type="varchar"),), key=("na`me",))


@pytest.mark.parametrize("size", [1, 2, 7, 100])
def test_every_key_is_in_one_chunk(size: int) -> None:
    keys = sorted(itertools.product(range(-3, 4), range(5)))
    boundaries = [tuple(map(str, key)) for key in keys[size - 1 :: size]]
    database = sqlite3.connect(":memory:")  # the conditions are plain SQL
    database.execute("CREATE TABLE t (a int, b int)")
    database.executemany("INSERT INTO t VALUES (?, ?)", keys)
    found = []
    for condition in conditions(["a", "b"], boundaries):
        rows = database.execute(f"SELECT a, b FROM t WHERE {condition}").fetchall()
        assert len(rows) <= size
        found += rows
    assert sorted(found) == keys


def test_a_row_beyond_the_walked_ends_is_in_the_first_or_the_last_chunk() -> None:
    wanted = conditions(["k0"], [("10",), ("20",)])
    assert wanted == ["((k0 <= 10))", "((k0 > 10)) and ((k0 <= 20))", "((k0 > 20))"]
    assert conditions(["k0"], []) == ["1 = 1"]


def test_the_walk_asks_for_the_key_after_so_many_rows() -> None:
    asked: list[str] = []
    answers: list[Sequence[Any] | None] = [("A A",), ("1", "5"), ("2", "9"), None]

    def ask(sql: str) -> Sequence[Any] | None:
        asked.append(sql)
        return answers[len(asked) - 1]

    assert list(walk(PAIR, 100, ask)) == [("1", "5"), ("2", "9")]
    assert "statistics" in asked[0]
    assert "LIMIT 1 OFFSET 99" in asked[1]
    assert "WHERE" not in asked[1]
    assert "`a` >= 1 and ((`a` > 1) or (`a` = 1 and `b` > 5))" in asked[2]


@pytest.mark.parametrize(
    ("index", "columns"), [("A A", 2), ("D D", 2), ("A D", 1), ("D A A", 1), ("A Ap", 1), ("Ap", 0), ("p p", 0)]
)
def test_a_walk_goes_by_the_columns_that_the_index_has_in_one_direction(index: str, columns: int) -> None:
    assert sorted_alike(index) == columns


def test_a_key_in_two_directions_is_walked_by_its_first_columns() -> None:
    answers = iter([("A D",), ("1",), None])
    asked: list[str] = []

    def ask(sql: str) -> Sequence[Any] | None:
        asked.append(sql)
        return next(answers)

    found: list[Boundary] = list(walk(PAIR, 100, ask))
    assert found == [("1",)]
    assert "ORDER BY `a` LIMIT" in asked[1]
    assert conditions(["k0", "k1"], found) == ["((k0 <= 1))", "((k0 > 1))"]


def test_a_walk_goes_on_behind_a_key_and_the_chunks_behind_it_are_all_but_those_before() -> None:
    asked: list[str] = []
    assert list(walk(PAIR, 100, asked.append, ("7", "8"))) == []
    assert "(`a` = 7 and `b` > 8)" in asked[1]
    assert conditions(["k0"], [("20",)], ("10",)) == ["((k0 > 10)) and ((k0 <= 20))", "((k0 > 20))"]
    assert conditions(["k0"], [("20",)], ("10",), to_the_end=False) == ["((k0 > 10)) and ((k0 <= 20))"]
    assert conditions(["k0"], [], ("10",)) == ["((k0 > 10))"]


def test_a_walk_that_comes_to_the_same_place_again_ends() -> None:
    """What its literal does not compare as would be found for ever."""
    assert list(walk(TEXT, 100, lambda sql: ("A",) if "statistics" in sql else ("3F",))) == [("_utf8mb4 x'3F'",)]


def test_a_value_is_never_part_of_the_sql_as_it_is() -> None:
    column = TEXT.columns[0]
    assert "`na``me`" in boundary_sql(TEXT, TEXT.columns, None, 5)
    assert literal(column, "27206F72".lower()) == "_utf8mb4 x'27206f72'"  # ' or, as bytes
    assert literal(column.model_copy(update={"charset": "gbk"}), "BABA") == "_gbk x'BABA'"
    assert literal(Column(name="d", type="date"), "2026-01-01") == "'2026-01-01'"
    assert literal(Column(name="b", type="varbinary"), "00FF") == "x'00FF'"
    assert literal(Column(name="u", type="inet6"), "::1") == "cast('::1' as inet6)"


@pytest.mark.parametrize(
    ("kinds", "ranges"),
    [(("int",), 1), (("varchar",), 1), (("enum",), 0), (("double", "int"), 0), (("int", "enum", "int"), 1), ((), 0)],
)
def test_chunks_are_ranges_of_the_columns_that_compare_as_they_sort(kinds: tuple[str, ...], ranges: int) -> None:
    columns = tuple(Column(name=f"c{n}", type=kind) for n, kind in enumerate(kinds))
    schema = TableSchema(db="shop", table="t", columns=columns, key=tuple(column.name for column in columns))
    assert walked(schema) == schema.key[:ranges]
    if not ranges:
        assert list(walk(schema, 1, lambda sql: ("1",))) == []
