from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.protocol.values.reader import Field
from tests.streamer.protocol.reading import column, wire

FSP = st.integers(0, 6)


def fraction(micros: int, fsp: int) -> tuple[bytes, str]:
    """As stored and as printed, cut to `fsp` digits."""
    kept = micros // 10 ** (6 - fsp) * 10 ** (6 - fsp)
    size = (fsp + 1) // 2
    return (kept // 100 ** (3 - size)).to_bytes(size, "big"), f".{kept:06d}"[: fsp + 1] if fsp else ""


@given(
    FSP, st.integers(0, 9999), st.integers(0, 12), st.integers(0, 31), st.integers(0, 86_399), st.integers(0, 999_999)
)
def test_datetime(fsp: int, year: int, month: int, day: int, second: int, micros: int) -> None:
    clock = (second // 3600) << 12 | second // 60 % 60 << 6 | second % 60
    raw, text = fraction(micros, fsp)
    packed = ((year * 13 + month) << 5 | day) << 17 | clock | 1 << 39
    said = f'"{year:04}-{month:02}-{day:02} {second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}{text}"'
    assert wire(Field(column("datetime", fsp=fsp)), packed.to_bytes(5, "big") + raw) == [said.encode()]


@given(FSP, st.booleans(), st.integers(0, 838), st.integers(0, 3599), st.integers(0, 999_999))
def test_time_below_zero_and_beyond_a_day(fsp: int, below: bool, hour: int, rest: int, micros: int) -> None:
    raw, text = fraction(micros, fsp)
    size = 3 + len(raw)
    number = (hour << 12 | rest // 60 << 6 | rest % 60) << 8 * len(raw) | int.from_bytes(raw, "big")
    packed = (1 << 8 * size - 1) + (-number if below else number)
    said = f'"{"-" if below and number else ""}{hour:02}:{rest // 60:02}:{rest % 60:02}{text}"'
    assert wire(Field(column("time", fsp=fsp)), packed.to_bytes(size, "big")) == [said.encode()]


def test_date_zero_and_partial() -> None:
    raws = [
        (year << 9 | month << 5 | day).to_bytes(3, "little")
        for year, month, day in ((0, 0, 0), (2024, 0, 10), (2024, 2, 31), (9999, 12, 31))
    ]
    wanted = [b'"0000-00-00"', b'"2024-00-10"', b'"2024-02-31"', b'"9999-12-31"']  # the third by ALLOW_INVALID_DATES
    assert wire(Field(column("date")), *raws) == wanted


def test_timestamp_is_utc_and_zero_is_zero() -> None:
    raws = [b"\0\0\0\0\0\0", (2**31 - 1).to_bytes(4, "big") + (9990).to_bytes(2, "big"), b"\0\0\0\1\0\0"]
    assert wire(Field(column("timestamp", fsp=3)), *raws) == [
        b'"0000-00-00T00:00:00.000Z"', b'"2038-01-19T03:14:07.999Z"', b'"1970-01-01T00:00:01.000Z"',
    ]  # fmt: skip


def test_what_is_no_time_is_refused() -> None:
    with pytest.raises(ValueError, match="time of day"):
        wire(Field(column("datetime")), b"\x80\x00\x00\x0f\xff")
