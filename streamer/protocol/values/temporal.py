"""DATE, TIME, DATETIME, TIMESTAMP: MySQL's own text, zero and partial dates included.

Source: MySQL's source documentation, mysys/my_time.cc (the `_packed_to_binary` functions). Parts that come again
and again are kept as text in dictionaries of bounded size.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from streamer.protocol.values.reader import Field, Reader

MANY, SOME = 100_000, 20_000  # entries kept, of about 150 bytes


class Texts(dict[int, bytes]):
    """Text by packed number, made when first asked for."""

    def __init__(self, make: Callable[[int], bytes], limit: int = SOME) -> None:
        super().__init__()
        self._make = make
        self._limit = limit

    def __missing__(self, packed: int) -> bytes:
        if len(self) >= self._limit:
            self.clear()
        text = self[packed] = self._make(packed)
        return text


def _day(year: int, month: int, day: int) -> bytes:
    if year > 9999 or month > 12:
        raise ValueError(f"no date: {year}-{month}-{day}")
    return b"%04d-%02d-%02d" % (year, month, day)


def _datetime_day(packed: int) -> bytes:
    """The sign bit, which is always set, then year and month in base 13, then the day."""
    year, month = divmod((packed ^ 1 << 22) >> 5, 13)
    return _day(year, month, packed & 31)


def _clock(packed: int) -> bytes:
    hour, minute, second = packed >> 12, packed >> 6 & 63, packed & 63
    if hour > 23 or minute > 59 or second > 59:
        raise ValueError(f"no time of day: {hour}:{minute}:{second}")
    return b"%02d:%02d:%02d" % (hour, minute, second)


def _seconds(seconds: int) -> bytes:
    if not seconds:
        return b"0000-00-00T00:00:00"
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%S").encode()


DATES = Texts(lambda packed: _day(packed >> 9, packed >> 5 & 15, packed & 31))
DAYS, CLOCKS, STAMPS = Texts(_datetime_day), Texts(_clock, MANY), Texts(_seconds)
CODES = ("", "B", "B", "H", "H", "BH", "BH")  # struct codes of a fraction, by its digits


def fraction(fsp: int, first: int) -> tuple[str, tuple[str, ...]]:
    """Template and arguments of `fsp` digits, whose fields begin with number `first`; an odd number of digits is
    kept as if it were one more."""
    if not fsp:
        return "", ()
    number = f"({{{first}}} << 16 | {{{first + 1}}})" if fsp > 4 else f"{{{first}}}"
    return f".%0{fsp}d", (f"{number} // 10" if fsp % 2 else number,)


def date(_: Field) -> Reader:
    return Reader('"%b"', ("{x}[{0} | {1} << 16]",), "HB", bound=DATES)


def datetime_(field: Field) -> Reader:
    """40 bits: 23 of the day, 17 of the clock."""
    form, args = fraction(field.column.fsp, 2)
    day, clock = "{x}[0][{0} << 15 | {1} >> 17]", "{x}[1][{1} & 131071]"
    return Reader(f'"%b %b{form}"', (day, clock, *args), "BI" + CODES[field.column.fsp], big=True, bound=(DAYS, CLOCKS))


def timestamp(field: Field) -> Reader:
    form, args = fraction(field.column.fsp, 1)
    return Reader(f'"%b{form}Z"', ("{x}[{0}]", *args), "I" + CODES[field.column.fsp], big=True, bound=STAMPS)


def time(field: Field) -> Reader:
    """One number of three to six bytes."""
    fsp = field.column.fsp
    layout, low = (("BH", 16), ("I", 0), ("BI", 32), ("HI", 32))[(fsp + 1) // 2]
    number = f"{{0}} << {low} | {{1}}" if low else "{0}"
    return Reader('"%b"', (f"{{x}}[{number}]",), layout, big=True, bound=TIMES[fsp])


def _time(fsp: int) -> Callable[[int], bytes]:
    """Below zero the whole number, fraction included, is a two's complement."""
    size = 8 * ((fsp + 1) // 2)
    zero = 1 << 23 + size

    def text(packed: int) -> bytes:
        sign, packed = (b"-", zero - packed) if packed < zero else (b"", packed - zero)
        whole, part = packed >> size, packed & (1 << size) - 1
        clock = b"%b%02d:%02d:%02d" % (sign, whole >> 12 & 0x3FF, whole >> 6 & 63, whole & 63)
        return clock + b".%0*d" % (fsp, part // 10 if fsp % 2 else part) if fsp else clock

    return text


TIMES = tuple(Texts(_time(fsp)) for fsp in range(7))
