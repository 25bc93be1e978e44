"""Which statements and shapes break a table's past, and which leave it whole."""

from __future__ import annotations

from typing import Any

import pytest

from contract.breaks import Break, last
from contract.schema import Column, TableSchema
from spark.evolution.breaks import KEPT, kept, of_shape, of_statement, read_since, spellings
from spark.evolution.state import Mark

AT = (0, 1, 100)


def mark(kind: str, statement: str = "ALTER TABLE t ...") -> Mark:
    return Mark(db="shop", table="t", kind=kind, seq=AT, gtid=None, ts_ms=7, statement=statement)


@pytest.mark.parametrize(
    ("given", "ends"),
    [
        (mark("drop"), True),
        (mark("rename"), True),
        (mark("partition"), True),
        (mark("unknown"), True),
        (mark("alter", "ALTER TABLE t IMPORT TABLESPACE"), True),
        (mark("alter", "ALTER IGNORE TABLE t ADD UNIQUE (a)"), True),
        (mark("cascade"), False),
        (mark("alter", "ALTER TABLE t ADD COLUMN imported int DEFAULT 1"), None),
    ],
)
def test_statements(given: Mark, ends: bool | None) -> None:
    found = of_statement(given)
    assert (found.ends if found else None) == ends
    assert found is None or (found.seq, found.ts_ms, found.silent) == (AT, 7, given.kind == "cascade")


def shape(*columns: Column, key: tuple[str, ...] = ("id",), version: int = 1) -> TableSchema:
    return TableSchema(
        db="shop", table="t", columns=(Column(name="id", type="int"), *columns), key=key, version=version
    )


def column(kind: str, name: str = "a", **more: Any) -> Column:
    charset = {"charset": "utf8mb4"} if "char" in kind or "text" in kind else {}
    return Column(name=name, type=kind, **charset, **more)


@pytest.mark.parametrize(
    ("was", "now", "broken"),
    [
        (column("int"), column("bigint"), False),
        (column("varchar", length=10), column("text"), False),
        (column("int"), column("varchar", length=10), False),  # its text is the number
        (column("blob"), column("text"), True),
        (column("text"), column("blob"), True),
        (column("date"), column("int"), True),
        (column("bigint", unsigned=True), column("int"), True),  # what was cut does not fit
        (column("datetime", fsp=0), column("datetime", fsp=3), False),
        (column("bit", length=1), column("bit", length=8), True),  # true, and bytes
        (column("bit", length=2), column("bit", length=9), False),
    ],
)
def test_values_of_another_form(was: Column, now: Column, broken: bool) -> None:
    found = of_shape(shape(was), shape(now, version=2), AT, lost_names=False, had={})
    assert (found is not None) == broken
    if found:
        assert (found.ends, found.columns, found.version) == (False, ("a",), 2)


@pytest.mark.parametrize(("now", "broken"), [(column("int"), True), (column("text"), False)])
def test_a_column_that_came_back_is_compared_with_the_one_that_was_dropped(now: Column, broken: bool) -> None:
    found = of_shape(shape(), shape(now, version=3), AT, lost_names=True, had={"a": column("varchar", length=10)})
    assert found
    assert (found.columns, found.version) == (("a",) if broken else (), 3)


@pytest.mark.parametrize(
    ("was", "now", "broken"),
    [
        (column("datetime", fsp=0), column("datetime", fsp=3), True),
        (column("decimal", precision=5, scale=1), column("decimal", precision=6, scale=2), True),
        (column("int"), column("bigint"), False),
        (column("varchar", length=10), column("varchar", length=20), False),
        (column("binary", length=4), column("binary", length=8), True),
        (column("bit", length=1), column("bit", length=8), True),
        (column("bit", length=2), column("bit", length=8), False),
        (column("int"), column("int", name="A"), True),  # the keys' texts have the name
    ],
)
def test_a_keys_values_of_another_text_end_the_versions_of_rows(was: Column, now: Column, broken: bool) -> None:
    before, after = shape(was, key=(was.name,)), shape(now, key=(now.name,), version=2)
    found = of_shape(before, after, AT, lost_names=False, had={})
    assert (found is not None and found.ends) == broken


def test_values_that_stayed_under_an_old_name_are_no_past_of_the_new_one() -> None:
    found = of_shape(shape(column("int")), shape(column("int", name="b"), version=2), AT, lost_names=True, had={})
    assert found == Break(db="shop", table="t", seq=AT, ends=False, version=2)


def test_a_name_that_differs_by_capital_letters() -> None:
    found = spellings(shape(column("int")), shape(column("int", name="A"), version=2))
    assert [one.name for one in found] == ["a", "A"]
    assert list(spellings(shape(column("int")), shape(column("bigint"), version=2))) == []


def test_the_breaks_of_one_table_make_no_other_ones_be_forgotten() -> None:
    other = Break(db="shop", table="u", seq=AT)
    many = [Break(db="shop", table="t", seq=(0, 1, n)) for n in range(KEPT + 5)]
    found = kept([other, *many])
    assert other in found
    assert [one.seq for one in found if one.table == "t"] == [(0, 1, n) for n in range(5, KEPT + 5)]


def test_what_foreign_keys_change_in_silence_is_read_by_each_snapshot() -> None:
    drop, silent = (of_statement(mark(kind)) for kind in ("drop", "cascade"))
    assert drop
    assert silent
    floors = {("shop", "t"): [0, 2, 50, -1, -1], ("shop", "u"): [0, 2, 60, -1, -1]}
    found = read_since([drop, silent], {}, ())
    assert found == [drop, silent], "no snapshot yet"
    found = read_since(found, floors, ())
    assert [(one.table, one.seq, one.silent) for one in found] == [("t", AT, False), ("t", (0, 2, 50), True)]
    allowed = read_since(found, {**floors, ("shop", "t"): [0, 3, 4, -1, -1]}, ("shop.u",))
    assert [(one.table, one.seq) for one in allowed if one.silent] == [("t", (0, 3, 4)), ("u", (0, 2, 60))]
    assert last(one for one in allowed if one.table == "t") == (0, 3, 4)
