"""Reads values of one column through a compiled decoder."""

from __future__ import annotations

import json
from typing import Any

from contract.schema import Column, TableSchema
from streamer.protocol.charsets import CHARSETS, Charset
from streamer.protocol.compiler import compile_rows
from streamer.protocol.values.reader import Field


def column(kind: str, **facts: Any) -> Column:
    return Column(name="c", type=kind, **facts)


def wire(field: Field, *values: bytes) -> list[bytes]:
    """The JSON text of each packed value."""
    decode, _ = compile_rows(TableSchema(db="d", table="t", columns=(field.column,)), [field])
    rows: list[bytes] = []
    packed = b"".join(b"\xfe" + value for value in values)
    decode(packed, 0, len(packed), rows.append, rows.append)
    assert all(json.loads(row) is not None for row in rows)
    return [row.removeprefix(b'{"c":').removesuffix(b"}") for row in rows]


def charset(name: str) -> Charset:
    return next(Charset(found, width, decode) for found, width, decode, _ in CHARSETS if found == name)
