"""Plans by combination of NULLs, and the general one behind them."""

from __future__ import annotations

import gc
import json
import random

import pytest

from contract.schema import Column, TableSchema
from streamer.protocol import compiler
from streamer.protocol.compiler import Plans, compile_rows
from streamer.protocol.fields import field
from streamer.protocol.values.reader import Field

COLUMNS = tuple(Column(name=f"c{n}", type=("int", "smallint", "varbinary")[n % 3]) for n in range(20))
FIELDS = [Field(column, 1 if column.type == "varbinary" else 0) for column in COLUMNS]


def packed(nulls: int, number: int) -> bytes:
    """A row whose values are all `number`."""
    values = [(4, b""), (2, b""), (0, bytes([1, number]))]
    parts = [nulls.to_bytes(3, "little")]
    for n in range(len(COLUMNS)):
        size, raw = values[n % 3]
        parts.append(b"" if nulls >> n & 1 else raw or number.to_bytes(size, "little"))
    return b"".join(parts)


def test_more_combinations_of_null_than_plans() -> None:
    decode, _ = compile_rows(TableSchema(db="d", table="t", columns=COLUMNS, key=("c0",)), FIELDS)
    rng = random.Random(3)
    nulls = [rng.getrandbits(20) & ~1 for _ in range(compiler.PLANS + 300)]
    raw = b"".join(packed(bits, n % 100) for n, bits in enumerate(nulls))
    rows: list[bytes] = []
    keys: list[bytes] = []
    decode(raw, 0, len(raw), rows.append, keys.append)
    for n, (bits, row) in enumerate(zip(nulls, rows, strict=True)):
        found = list(json.loads(row).values())
        assert [value is None for value in found] == [bool(bits >> place & 1) for place in range(20)]
        assert keys[n] == b'{"c0":%d}' % (n % 100)
        assert all(value in (None, n % 100) for place, value in enumerate(found) if place % 3 < 2)


def test_many_tables_of_many_combinations_take_no_more_plans_than_all_may(monkeypatch: pytest.MonkeyPatch) -> None:
    gc.collect()
    before = Plans.made
    monkeypatch.setattr(compiler, "ALL_PLANS", before + 30)
    tables = [
        compile_rows(TableSchema(db="d", table=f"t{n}", columns=COLUMNS, key=("c0",)), FIELDS)[0] for n in range(10)
    ]
    rng, rows = random.Random(5), list[bytes]()
    for _ in range(20):
        for decode in tables:
            nulls = rng.getrandbits(20) & ~1
            raw = packed(nulls, 9)
            decode(raw, 0, len(raw), rows.append, lambda key: None)
            found = list(json.loads(rows.pop()).values())
            assert [value is None for value in found] == [bool(nulls >> place & 1) for place in range(20)]
    assert Plans.made - before == max(30, compiler.FEW * len(tables))
    del tables, decode
    gc.collect()
    assert Plans.made == before, "those of tables that are gone count no more"


def test_the_source_is_there_to_be_read() -> None:
    _, source = compile_rows(TableSchema(db="d", table="t", columns=COLUMNS[:2], key=("c1",)), FIELDS[:2])
    assert source.startswith("def plan(d, o, rows, keys):\n")
    assert '{"c0":%d,"c1":%d}' in source
    assert '{"c1":%d}' in source


def test_as_many_texts_as_a_table_can_have() -> None:
    columns = tuple(Column(name=f"c{n}", type="varchar", length=9, charset="utf8mb4") for n in range(4096))
    decode, _ = compile_rows(TableSchema(db="d", table="t", columns=columns, key=("c0",)), list(map(field, columns)))
    rows: list[bytes] = []
    keys: list[bytes] = []
    raw = bytes(512) + b"\x01x" * 4095 + b'\x01"'
    decode(raw, 0, len(raw), rows.append, keys.append)
    assert list(json.loads(rows[0]).values()) == ["x"] * 4095 + ['"']
