from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.protocol.values.numbers import shortest
from streamer.protocol.values.reader import Field
from tests.streamer.protocol.reading import column, wire

SIZES = {"tinyint": 1, "smallint": 2, "mediumint": 3, "int": 4, "bigint": 8}


@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("unsigned", [False, True])
def test_integers_keep_all_their_digits(kind: str, unsigned: bool) -> None:
    bits = 8 * SIZES[kind]
    low, high = (0, 2**bits - 1) if unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    numbers = [low, high, 0, 1, high // 3, low // 3]
    raws = [number.to_bytes(SIZES[kind], "little", signed=not unsigned) for number in numbers]
    assert wire(Field(column(kind, unsigned=unsigned)), *raws) == [str(number).encode() for number in numbers]


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_a_float_is_the_shortest_text_that_reads_back(value: float) -> None:
    text = shortest(value)
    assert struct.pack("<f", float(text)) == struct.pack("<f", value)
    assert len(text) <= len(repr(value))


def test_floats_look_as_they_were_written() -> None:
    assert wire(Field(column("float")), *(struct.pack("<f", x) for x in (0.1, 123456.789, 1e10))) == [
        b"0.1", b"123456.79", b"10000000000.0",
    ]  # fmt: skip


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_double_reads_back(value: float) -> None:
    (text,) = wire(Field(column("double")), struct.pack("<d", value))
    assert struct.pack("<d", float(text)) == struct.pack("<d", value)


def test_year_zero_is_zero() -> None:
    assert wire(Field(column("year")), b"\0", b"\1", b"\xff") == [b"0", b"1901", b"2155"]


def test_a_vector_is_an_array_of_its_floats() -> None:
    raw = struct.pack("<I3f", 12, 1, -0.1, 1e-45)
    assert wire(Field(column("vector", length=3), 4), raw) == [b"[1.0,-0.1,1e-45]"]


def test_a_vectors_element_that_is_no_number_is_refused() -> None:
    with pytest.raises(ValueError, match="no number"):
        wire(Field(column("vector", length=1), 4), struct.pack("<If", 4, float("nan")))
