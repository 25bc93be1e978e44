from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.protocol.values.reader import Field
from streamer.protocol.values.text import escape
from tests.streamer.protocol.reading import charset, column, wire


@given(st.text(max_size=60))
def test_text_is_json_of_the_same_text(value: str) -> None:
    raw = value.encode("utf-8", "ignore")
    (text,) = wire(Field(column("varchar"), 2, charset("utf8mb4")), len(raw).to_bytes(2, "little") + raw)
    assert json.loads(text) == raw.decode()


def test_escapes_are_mysqls() -> None:
    assert escape(b'\x00\x01\b\t\n\x0b\f\r\x1f\x7f"\\/') == rb"\u0000\u0001\b\t\n\u000b\f\r\u001f" + b'\x7f\\"\\\\/'


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_length_prefixes(size: int) -> None:
    field = Field(column("longtext"), size, charset("utf8mb4"))
    assert wire(field, (3).to_bytes(size, "little") + b"abc", bytes(size)) == [b'"abc"', b'""']


def test_latin1_is_what_mysql_calls_latin1() -> None:
    field = Field(column("varchar"), 1, charset("latin1"))
    assert wire(field, b"\x03\x80\x81\xe9") == ['"€\x81é"'.encode()]


def test_enum_by_index_and_set_by_bits() -> None:
    enum = Field(column("enum", members=('a"', "b")), 1)
    assert wire(enum, b"\0", b"\1", b"\2") == [b'""', b'"a\\""', b'"b"']
    with pytest.raises(IndexError):
        wire(enum, b"\3")
    many = Field(column("set", members=tuple(f"m{n}" for n in range(64))), 8)
    assert wire(many, bytes(8), (1 << 63 | 1).to_bytes(8, "little")) == [b'""', b'"m0,m63"']
    three = Field(column("set", members=tuple("abcdefghijklmnopqrs")), 3)
    assert wire(three, (1 << 18 | 2).to_bytes(3, "little")) == [b'"b,s"']
    with pytest.raises(ValueError, match="member"):
        wire(three, b"\xff\xff\xff")
