"""Integers, floats, YEAR, BIT(1): JSON numbers with all their digits, and booleans."""

from __future__ import annotations

from struct import Struct

import orjson

from streamer.protocol.values.reader import Field, Reader

_single = Struct("<f")
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
    for digits in range(6, 9):
        text = f"{value:.{digits}g}"
        if _single.unpack(_single.pack(float(text)))[0] == value:
            break
    else:
        text = f"{value:.9g}"
    return repr(float(text)).encode()
