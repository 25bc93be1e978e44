"""TIME, DATETIME and TIMESTAMP as MariaDB keeps them with `mysql56_temporal_format=OFF`: MySQL's text all the same.

Source: MariaDB's source documentation, sql/field.cc (Field_time_hires and its like). Without a fraction the decimal
digits are a little-endian number; with one, a count of the fraction's units is big-endian.
"""

from __future__ import annotations

from collections.abc import Callable

from streamer.protocol.values.reader import Field, Reader
from streamer.protocol.values.temporal import STAMPS

TIME_BYTES, DATETIME_BYTES = (3, 4, 4, 5, 5, 5, 6), (8, 6, 6, 7, 7, 7, 8)  # by the fraction's digits
STAMP_BYTES = (4, 5, 5, 6, 6, 7, 7)
TIMES_END = 3_020_400  # seconds: behind the greatest TIME


def time(field: Field) -> Reader:
    fsp = field.column.fsp
    return _fixed(TIME_BYTES[fsp], lambda raw: _time(raw, fsp))


def datetime_(field: Field) -> Reader:
    fsp = field.column.fsp
    return _fixed(DATETIME_BYTES[fsp], lambda raw: _datetime(raw, fsp))


def timestamp(field: Field) -> Reader:
    fsp = field.column.fsp
    return _fixed(STAMP_BYTES[fsp], lambda raw: _timestamp(raw, fsp))


def _fixed(size: int, text: Callable[[bytes], str]) -> Reader:
    read = (f"{{v}} = d[o:o + {size}]", f"o += {size}")
    return Reader('"%b"', ("{x}({v})",), read=read, bound=lambda raw: text(raw).encode())


def _time(raw: bytes, fsp: int) -> str:
    if fsp:
        units = int.from_bytes(raw, "big") - TIMES_END * 10**fsp
        seconds, part = divmod(abs(units), 10**fsp)
        minutes, hours = seconds // 60, seconds // 3600
        clock = f"{hours:02d}:{minutes % 60:02d}:{seconds % 60:02d}"
    else:
        units, part = int.from_bytes(raw, "little", signed=True), 0
        digits = f"{abs(units):06d}"
        clock = f"{digits[:-4]}:{digits[-4:-2]}:{digits[-2:]}"
    return ("-" if units < 0 else "") + clock + _fraction(part, fsp)


def _datetime(raw: bytes, fsp: int) -> str:
    if not fsp:
        digits = f"{int.from_bytes(raw, 'little'):014d}"
        return f"{digits[:4]}-{digits[4:6]}-{digits[6:8]} {digits[8:10]}:{digits[10:12]}:{digits[12:]}"
    seconds, part = divmod(int.from_bytes(raw, "big"), 10**fsp)
    days, seconds = divmod(seconds, 86_400)
    months, day = divmod(days, 32)
    year, month = divmod(months, 13)
    clock = f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    return f"{year:04d}-{month:02d}-{day:02d} {clock}" + _fraction(part, fsp)


def _timestamp(raw: bytes, fsp: int) -> str:
    seconds = int.from_bytes(raw[:4], "big" if fsp else "little")
    return STAMPS[seconds].decode() + _fraction(int.from_bytes(raw[4:], "big"), fsp) + "Z"


def _fraction(part: int, fsp: int) -> str:
    return f".{part:0{fsp}d}" if fsp else ""
