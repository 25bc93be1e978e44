"""Integers, floats, YEAR: JSON numbers with all their digits; VECTOR: an array of them."""

from __future__ import annotations

from math import isfinite
from struct import Struct, unpack

import orjson

from streamer.protocol.values.reader import Field, Reader, prefixed

_single = Struct("<f")
NORMAL = 2.0**-126  # smaller ones have fewer than six digits
CODES = {"tinyint": "b", "smallint": "h", "int": "i", "bigint": "q"}


def integer(field: Field) -> Reader:
    unsigned = field.column.unsigned
    if field.column.type == "mediumint":
        return Reader("%d", ("{0} | {1} << 16",), "HB" if unsigned else "Hb")
    code = CODES[field.column.type]
    return Reader("%d", ("{0}",), code.upper() if unsigned else code)


def year(_: Field) -> Reader:
    return Reader("%d", ("{0} and {0} + 1900",), "B")


def double(_: Field) -> Reader:
    return Reader("%b", ("{x}({0})",), "d", bound=orjson.dumps)


def single(_: Field) -> Reader:
    return Reader("%b", ("{x}({0})",), "f", bound=shortest)


def shortest(value: float) -> bytes:
    """The shortest decimal text that reads back as the same 32-bit float."""
    for digits in range(6 if abs(value) >= NORMAL else 1, 9):
        text = f"{value:.{digits}g}"
        if _single.unpack(_single.pack(float(text)))[0] == value:
            break
    else:
        text = f"{value:.9g}"
    return repr(float(text)).encode()


def vector(field: Field) -> Reader:
    return Reader("%b", ("{x}({v})",), read=prefixed(field.size), bound=_array)


def _array(raw: bytes) -> bytes:
    numbers = unpack(f"<{len(raw) // 4}f", raw)
    if not isfinite(sum(numbers)):
        raise ValueError("a vector's element is no number")
    return b"[" + b",".join(map(shortest, numbers)) + b"]"
