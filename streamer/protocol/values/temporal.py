"""DATE, TIME, DATETIME, TIMESTAMP: MySQL's own text, zero and partial dates included.

Source: MySQL's source documentation, mysys/my_time.cc (the `_packed_to_binary` functions). Parts that come again
and again are kept as text, by their bytes, in dictionaries of bounded size.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from streamer.protocol.values.reader import Field, Reader

LIMIT = 100_000  # entries, of about 100 bytes


class Texts(dict[bytes, bytes]):
    """Text by bytes, made when first asked for."""

    def __init__(self, make: Callable[[bytes], bytes]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, raw: bytes) -> bytes:
        if len(self) >= LIMIT:
            self.clear()
        text = self[raw] = self._make(raw)
        return text


def _day(year: int, month: int, day: int) -> bytes:
    if year > 9999 or month > 12:
        raise ValueError(f"no date: {year}-{month}-{day}")
    return b"%04d-%02d-%02d" % (year, month, day)


def _date(raw: bytes) -> bytes:
    packed = int.from_bytes(raw, "little")
    return _day(packed >> 9, packed >> 5 & 15, packed & 31)


def _datetime_day(raw: bytes) -> bytes:
    packed = (int.from_bytes(raw, "big") ^ 0x800000) >> 1  # the last bit is the hour's highest
    year, month = divmod(packed >> 5, 13)
    return _day(year, month, packed & 31)


def _clock(packed: int) -> bytes:
    hour, minute, second = packed >> 12, packed >> 6 & 63, packed & 63
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"no time of day: {hour}:{minute}:{second}")
    return b"%02d:%02d:%02d" % (hour, minute, second)


def _seconds(raw: bytes) -> bytes:
    seconds = int.from_bytes(raw, "big")
    if not seconds:
        return b"0000-00-00T00:00:00"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S").encode()


DATES = Texts(_date)
DAYS = Texts(_datetime_day)
EARLY = Texts(lambda raw: _clock(int.from_bytes(raw, "big")))
LATE = Texts(lambda raw: _clock(int.from_bytes(raw, "big") | 1 << 16))
STAMPS = Texts(_seconds)


def fraction(fsp: int, first: int) -> tuple[str, tuple[str, ...], str]:
    """Template, arguments and layout of `fsp` digits, kept big-endian in (fsp + 1) // 2 bytes, of which the first
    is field `first`."""
    size = (fsp + 1) // 2
    if not size:
        return "", (), ""
    parts = [f"{{{first + i}}} << {8 * (size - 1 - i)}" for i in range(size - 1)] + [f"{{{first + size - 1}}}"]
    number = " | ".join(parts)
    return f".%0{fsp}d", (f"({number}) // 10" if fsp % 2 else number,), "B" * size


def date(_: Field) -> Reader:
    return Reader('"%b"', ("{x}[{0}]",), "3s", bound=DATES)


def datetime_(field: Field) -> Reader:
    form, args, layout = fraction(field.column.fsp, 2)
    clock = "({x}[2] if {0}[2] & 1 else {x}[1])[{1}]"
    return Reader(f'"%b %b{form}"', ("{x}[0][{0}]", clock, *args), "3s2s" + layout, bound=(DAYS, EARLY, LATE))


def timestamp(field: Field) -> Reader:
    form, args, layout = fraction(field.column.fsp, 1)
    return Reader(f'"%b{form}Z"', ("{x}[{0}]", *args), "4s" + layout, bound=STAMPS)


def time(field: Field) -> Reader:
    fsp = field.column.fsp
    return Reader('"%b"', ("{x}[{0}]",), f"{3 + (fsp + 1) // 2}s", bound=TIMES[fsp])


def _time(fsp: int) -> Callable[[bytes], bytes]:
    """Below zero the whole number, fraction included, is a two's complement."""
    size = (fsp + 1) // 2

    def text(raw: bytes) -> bytes:
        packed = int.from_bytes(raw, "big") - (1 << (8 * len(raw) - 1))
        sign, packed = (b"-", -packed) if packed < 0 else (b"", packed)
        whole, part = packed >> 8 * size, packed & (1 << 8 * size) - 1
        clock = b"%b%02d:%02d:%02d" % (sign, whole >> 12 & 0x3FF, whole >> 6 & 63, whole & 63)
        return clock + b".%0*d" % (fsp, part // 10 if fsp % 2 else part) if fsp else clock

    return text


TIMES = tuple(Texts(_time(fsp)) for fsp in range(7))
