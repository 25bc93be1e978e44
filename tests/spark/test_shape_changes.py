"""Each difference between two shapes has its name and its rule."""

from __future__ import annotations

from typing import Any

import pytest

from contract.schema import Column, TableSchema
from spark.evolution.shape_changes import keeps_values, shape_changes

ID = Column(name="id", type="int", nullable=False)
BASE = Column(name="c", type="int")
OTHER = Column(name="d", type="date")


def shape(*columns: Column, key: tuple[str, ...] = ("id",)) -> TableSchema:
    return TableSchema(db="shop", table="t", columns=(ID, *columns), key=key)


def of(**facts: Any) -> TableSchema:
    return shape(Column(**{"name": "c", "type": "int", **facts}))


TEXT = {"type": "text", "charset": "utf8mb4"}
ENUM = {"type": "enum", "charset": "utf8mb4"}
SET = {"type": "set", "charset": "utf8mb4"}
DECIMAL = {"type": "decimal", "precision": 10, "scale": 2}
LONG = {"type": "decimal", "precision": 40, "scale": 2}


@pytest.mark.parametrize(
    ("before", "after", "found", "keeps"),
    [
        (shape(BASE), shape(BASE, OTHER), [("added", "d", "carried")], False),
        (shape(BASE, OTHER), shape(BASE), [("dropped", "d", "carried")], True),
        (shape(BASE), shape(BASE.model_copy(update={"name": "e"})), [("renamed", "c", "stale")], False),
        (shape(BASE), shape(OTHER), [("dropped", "c", "carried"), ("added", "d", "carried")], False),
        (shape(BASE, OTHER), shape(OTHER, BASE), [("reordered", None, "carried")], True),
        (of(), of(type="bigint"), [("widened", "c", "carried")], True),
        (of(), of(type="bigint", unsigned=True), [("retyped", "c", "stale")], False),
        (of(unsigned=True), of(type="bigint"), [("widened", "c", "carried")], True),
        (of(), of(type="smallint"), [("narrowed", "c", "stale")], False),
        (of(type="varchar", length=5), of(type="varchar", length=9), [("widened", "c", "carried")], True),
        (of(type="varchar", length=9), of(type="varchar", length=5), [("narrowed", "c", "stale")], False),
        (of(**TEXT), of(**{**TEXT, "type": "mediumtext"}), [("widened", "c", "carried")], True),
        (of(**{**TEXT, "type": "varchar", "length": 9}), of(**TEXT), [("widened", "c", "carried")], True),
        (of(**{**TEXT, "type": "longtext"}), of(**TEXT), [("narrowed", "c", "stale")], False),
        (of(**{**TEXT, "type": "char", "length": 9}), of(**TEXT), [("retyped", "c", "stale")], False),
        (of(**TEXT), of(type="mediumtext", charset="latin1"), [("retyped", "c", "stale")], False),
        (of(type="tinyblob"), of(type="longblob"), [("widened", "c", "carried")], True),
        (of(type="varbinary", length=5), of(type="varbinary", length=9), [("widened", "c", "carried")], True),
        # The source fills each value up to the new length: of the values that were there nothing came.
        (of(type="binary", length=5), of(type="binary", length=9), [("widened", "c", "stale")], False),
        (of(type="bit", length=8), of(type="bit", length=9), [("widened", "c", "stale")], False),
        (of(type="bit", length=9), of(type="bit", length=16), [("widened", "c", "carried")], True),
        (of(type="datetime"), of(type="datetime", fsp=3), [("widened", "c", "carried")], True),
        # Texts in the lake: the digits that the source adds are not in them.
        (
            of(type="datetime", unfit="string"),
            of(type="datetime", fsp=3, unfit="string"),
            [("widened", "c", "stale")],
            False,
        ),
        (of(type="time"), of(type="time", fsp=3), [("widened", "c", "stale")], False),
        (of(**LONG), of(**{**LONG, "precision": 41}), [("widened", "c", "carried")], True),
        (of(**LONG), of(**{**LONG, "precision": 41, "scale": 3}), [("widened", "c", "stale")], False),
        (of(**DECIMAL), of(**{**DECIMAL, "precision": 12}), [("widened", "c", "carried")], True),
        (of(**{**DECIMAL, "precision": 12}), of(**DECIMAL), [("narrowed", "c", "stopped")], False),
        (of(**DECIMAL), of(**LONG), [("widened", "c", "stopped")], False),
        (of(unsigned=True), of(type="bigint", unsigned=True), [("widened", "c", "carried")], True),
        (of(**DECIMAL), of(**{**DECIMAL, "scale": 3}), [("retyped", "c", "stopped")], False),
        (of(), of(type="varchar", length=20), [("retyped", "c", "stopped")], False),
        (
            of(type="varchar", length=5, charset="latin1"),
            of(type="varchar", length=5, charset="utf8mb4"),
            [("charset", "c", "stale")],
            False,
        ),
        (of(**ENUM, members=("a",)), of(**ENUM, members=("b", "a")), [("members", "c", "carried")], True),
        (of(**ENUM, members=("a", "b")), of(**ENUM, members=("a",)), [("members", "c", "stale")], False),
        (of(**SET, members=("a", "c")), of(**SET, members=("a", "b", "c")), [("members", "c", "carried")], True),
        (of(**SET, members=("a", "c")), of(**SET, members=("c", "a")), [("members", "c", "stale")], False),
        (of(nullable=False), of(), [("nullability", "c", "carried")], True),
        (of(), of(nullable=False), [("nullability", "c", "stale")], False),
        (shape(BASE), shape(BASE, key=("id", "c")), [("key", None, "carried")], False),
        (shape(BASE), shape(BASE, OTHER, key=("d",)), [("added", "d", "carried"), ("key", None, "stale")], False),
        (shape(BASE), shape(BASE, key=()), [("key", None, "stopped")], False),
        (of(), shape(Column(name="C", type="int")), [], True),
    ],
)
def test_a_difference_has_its_rule(
    before: TableSchema, after: TableSchema, found: list[tuple[str, str | None, str]], keeps: bool
) -> None:
    changes = shape_changes(before, after)
    assert [(one.kind, one.column, one.rule) for one in changes] == found
    assert keeps_values(changes) == keeps
    assert all(one.kind in one.told for one in changes)
