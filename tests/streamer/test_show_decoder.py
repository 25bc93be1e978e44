"""The printed decoder is the one that decodes."""

from __future__ import annotations

import json
from struct import Struct

from contract.schema import Column, TableSchema
from streamer.protocol.values.text import PLAIN, escape
from streamer.show_decoder import source

SCHEMA = TableSchema(
    db="shop", table="orders", version=3, key=("id",),
    columns=(
        Column(name="id", type="int", nullable=False),
        Column(name="status", type="enum", charset="utf8mb4", members=("new", "paid")),
        Column(name="note", type="varchar", length=20, charset="utf8mb4"),
    ),
)  # fmt: skip


def test_what_is_printed_runs_and_decodes_a_row() -> None:
    printed = source(SCHEMA)
    assert "shop.orders, schema version 3" in printed
    assert "# x1: gives the text of 'status', enum" in printed
    assert "<row" not in printed
    scope = {"Struct": Struct, "PLAIN": PLAIN, "escape": escape, "x1": (b'""', b'"new"', b'"paid"')}
    exec(printed, scope)
    rows: list[bytes] = []
    keys: list[bytes] = []
    row = (7).to_bytes(4, "little") + b"\x02" + b'\x04a"b\\'
    assert scope["plan"](row, 0, rows.append, keys.append) == len(row)  # type: ignore[operator]
    assert [json.loads(row) for row in rows] == [{"id": 7, "status": "paid", "note": 'a"b\\'}]
    assert keys == [b'{"id":7}']
