"""DECIMAL of every precision and scale, packed here as MySQL packs it."""

from __future__ import annotations

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from streamer.protocol.values.decimals import BYTES, size_of, unpacker
from streamer.protocol.values.reader import Field
from tests.streamer.protocol.reading import column, wire

SHAPES = st.integers(1, 65).flatmap(lambda p: st.tuples(st.just(p), st.integers(0, min(p, 30))))


def packed(number: int, precision: int, scale: int) -> bytes:
    """`number` is the value without its point."""
    digits = f"{abs(number):0{precision}d}"
    whole, fraction = digits[: precision - scale], digits[precision - scale :]
    lead = len(whole) % 9
    groups = [whole[:lead]] + [whole[n : n + 9] for n in range(lead, len(whole), 9)]
    groups += [fraction[n : n + 9] for n in range(0, len(fraction), 9)]
    raw = bytearray(b"".join(int(group).to_bytes(BYTES[len(group)], "big") for group in groups if group))
    if number < 0:
        raw = bytearray(byte ^ 0xFF for byte in raw)
    raw[0] ^= 0x80
    return bytes(raw)


@given(SHAPES.flatmap(lambda shape: st.tuples(st.just(shape), st.integers(-(10 ** shape[0]) + 1, 10 ** shape[0] - 1))))
def test_every_number_of_every_shape(case: tuple[tuple[int, int], int]) -> None:
    (precision, scale), number = case
    text = f"{Decimal(number).scaleb(-scale):.{scale}f}" if precision <= 28 else _text(number, scale)
    raw = packed(number, precision, scale)
    assert len(raw) == size_of(precision, scale)
    field = Field(column("decimal", precision=precision, scale=scale), len(raw))
    assert wire(field, raw) == [f'"{text}"'.encode()]
    assert unpacker(precision, scale)(raw) == text.encode(), "as inside JSON"


def _text(number: int, scale: int) -> str:
    digits = f"{abs(number):0{scale + 1}d}"
    point = len(digits) - scale
    return ("-" if number < 0 else "") + digits[:point] + ("." + digits[point:] if scale else "")
