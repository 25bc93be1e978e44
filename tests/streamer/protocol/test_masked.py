"""Masks inside the compiled decoder."""

from __future__ import annotations

import json

from contract.masks import Mask
from contract.schema import Column, TableSchema
from streamer.protocol import compiler
from streamer.protocol.compiler import compile_rows
from streamer.protocol.fields import field

COLUMNS = (
    Column(name="id", type="int", nullable=False),
    Column(name="a", type="varchar", length=9, charset="utf8mb4"),
    Column(name="b", type="varchar", length=9, charset="latin1"),
    Column(name="c", type="int"),
    Column(name="d", type="enum", charset="utf8mb4", members=("x", 'q"')),
)
ROW = b"\x07\x00\x00\x00" + b'\x04a"\\b' + b"\x03\xe4\nz" + b"\xf4\xff\xff\xff" + b"\x02"


def decoded(masks: dict[int, Mask], shown: list[int] | None = None, nulls: int = 0, row: bytes = ROW) -> list[str]:
    """The row's text, then its key's."""
    names = [COLUMNS[n] for n in (range(len(COLUMNS)) if shown is None else shown)]
    schema = TableSchema(db="d", table="t", columns=tuple(names), key=("id",))
    decode, _ = compile_rows(schema, list(map(field, COLUMNS)), shown, masks)
    found: list[bytes] = []
    raw = bytes([nulls]) + row
    decode(raw, 0, len(raw), found.append, found.append)
    return [text.decode() for text in found]


def test_masks_work_on_the_text_without_escapes() -> None:
    row, key = decoded({n: Mask("keep_last", 1) for n in range(1, 5)})
    assert json.loads(row) == {"id": 7, "a": "***b", "b": "**z", "c": "**2", "d": '*"'}
    assert key == '{"id":7}'
    row, _ = decoded({n: Mask("truncate", 2) for n in range(1, 5)})
    assert row == '{"id":7,"a":"a\\"","b":"ä\\n","c":"-1","d":"q\\""}', "escaped as ever"


def test_null_stays_null_and_the_mask_null_leaves_nothing() -> None:
    row, _ = decoded({1: Mask("obfuscate"), 3: Mask("null")}, nulls=2, row=ROW[:4] + ROW[9:])
    assert json.loads(row) == {"id": 7, "a": None, "b": "ä\nz", "c": None, "d": 'q"'}


def test_a_masked_key_is_masked_in_the_key_too() -> None:
    row, key = decoded({0: Mask("hash", secret=b"s")})
    assert json.loads(key) == {"id": json.loads(row)["id"]}
    assert len(json.loads(key)["id"]) == 64


def test_excluded_columns_are_read_past() -> None:
    row, _ = decoded({1: Mask("obfuscate")}, shown=[0, 1, 4])
    assert json.loads(row) == {"id": 7, "a": "****", "d": 'q"'}


def test_the_plan_that_tests_every_column_masks_too() -> None:
    compiler.PLANS, before = 0, compiler.PLANS
    try:
        row, _ = decoded({1: Mask("obfuscate"), 2: Mask("null"), 4: Mask("keep_last", 1)})
    finally:
        compiler.PLANS = before
    assert json.loads(row) == {"id": 7, "a": "****", "b": None, "c": -12, "d": '*"'}
