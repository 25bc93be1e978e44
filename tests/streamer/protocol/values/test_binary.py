from __future__ import annotations

import base64
import json

from hypothesis import given
from hypothesis import strategies as st

from streamer.protocol.values.reader import Field
from tests.streamer.protocol.reading import column, wire


@given(st.binary(max_size=255))
def test_base64_in_one_line(value: bytes) -> None:
    (text,) = wire(Field(column("varbinary", length=255), 1), bytes([len(value)]) + value)
    assert base64.b64decode(json.loads(text), validate=True) == value


def test_binary_gets_its_zero_bytes_back() -> None:
    assert wire(Field(column("binary", length=4), 1), b"\x01a", b"\x00") == [b'"YQAAAA=="', b'"AAAAAA=="']


def test_one_bit_is_a_truth_more_are_bytes() -> None:
    assert wire(Field(column("bit", length=1), 1), b"\0", b"\1") == [b"false", b"true"]
    assert wire(Field(column("bit", length=9), 2), b"\1\0") == [b'"AQA="']


def test_a_geometry_is_its_wkb_and_its_srid() -> None:
    wkb = bytes.fromhex("0101000000000000000000f03f0000000000000040")
    raw = (25).to_bytes(4, "little") + (4326).to_bytes(4, "little") + wkb
    assert wire(Field(column("point"), 4), raw) == [b'{"wkb":"AQEAAAAAAAAAAADwPwAAAAAAAABA","srid":4326}']
