"""A table's shape."""

from __future__ import annotations

from contract.schema import Column, TableSchema


def test_the_key_alone_has_its_columns_in_the_keys_order() -> None:
    columns = tuple(Column(name=name, type="int") for name in ("n", "note", "region"))
    key = TableSchema(db="shop", table="lines", version=2, columns=columns, key=("region", "n")).of_key()
    assert [column.name for column in key.columns] == ["region", "n"]
    assert (key.db, key.table, key.version, key.key) == ("shop", "lines", 2, ("region", "n"))
