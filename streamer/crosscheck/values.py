"""A value of ours beside mysql-replication's: the same, or different by a known defect, or unexplained.

mysql-replication gives Python objects, ours are wire values (contract/types.py). KNOWN says in which cases the
reference is wrong, or says less, as it follows from the bytes (explained.py); nothing else may differ.
"""

from __future__ import annotations

import base64
import json
import struct
from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from contract.schema import Column
from contract.types import GEOMETRIES
from streamer.crosscheck import explained

TEMPORAL = ("date", "datetime", "timestamp")
BINARY = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")
TEXT = ("char", "varchar", "tinytext", "text", "mediumtext", "longtext")
ADDRESSES = ("uuid", "inet4", "inet6")
Test = Callable[[Column, Any, Any], bool]
Leaf = Callable[[Any, Any], bool]


def verdict(column: Column, ours: Any, theirs: Any) -> str | None:
    """None for the same value; else the name of the defect that explains the difference, empty where none does."""
    if same(column, ours, theirs):
        return None
    return next((name for name, (explains, _) in KNOWN.items() if explains(column, ours, theirs)), "")


def same(column: Column, ours: Any, theirs: Any) -> bool:
    if ours is None or theirs is None:
        return ours is theirs
    compare = COMPARE.get(column.type)
    return bool(ours == theirs) if compare is None else compare(column, ours, theirs)


def _float(column: Column, ours: Any, theirs: Any) -> bool:
    return struct.pack("<f", ours) == struct.pack("<f", theirs)


def _decimal(column: Column, ours: Any, theirs: Any) -> bool:
    return isinstance(theirs, Decimal) and Decimal(ours) == theirs and ours == _plain(theirs, column.scale or 0)


def _plain(number: Decimal, scale: int) -> str:
    text = f"{number:.{scale}f}"
    return text.removeprefix("-") if not number else text


def _binary(column: Column, ours: Any, theirs: Any) -> bool:
    return isinstance(theirs, bytes) and base64.b64decode(ours) == theirs


def _bit(column: Column, ours: Any, theirs: Any) -> bool:
    if column.length == 1:
        return bool(ours) is (theirs == "1")
    return bool(f"{int.from_bytes(base64.b64decode(ours)):0{column.length}b}" == theirs)


def _moment(column: Column, ours: Any, theirs: Any) -> bool:
    if not isinstance(theirs, date):
        return False
    text = f"{theirs.year:04}" + theirs.strftime("-%m-%d")
    if isinstance(theirs, datetime):
        text += theirs.strftime(" %H:%M:%S")
        text += f".{theirs.microsecond:06}"[: column.fsp + 1] if column.fsp else ""
    return bool(ours == (text.replace(" ", "T") + "Z" if column.type == "timestamp" else text))


def _time(column: Column, ours: Any, theirs: Any) -> bool:
    return isinstance(theirs, timedelta) and ours == _time_text(theirs, column.fsp)


def _time_text(span: timedelta, fsp: int) -> str:
    micros = abs(span) // timedelta(microseconds=1)
    seconds, part = divmod(micros, 1_000_000)
    text = f"{'-' if span < timedelta() else ''}{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}"
    return text + (f".{part:06}"[: fsp + 1] if fsp else "")


def _set(column: Column, ours: Any, theirs: Any) -> bool:
    return bool(ours == ",".join(member for member in column.members if member in theirs))


def _json(column: Column, ours: Any, theirs: Any) -> bool:
    return _tree(json.loads(ours, parse_float=Decimal), theirs, _leaf)


def _json_opaque(column: Column, ours: Any, theirs: Any) -> bool:
    either: Leaf = lambda one, other: _leaf(one, other) or explained.opaque(one, other)  # noqa: E731
    return column.type == "json" and _tree(json.loads(ours, parse_float=Decimal), theirs, either)


def _tree(ours: Any, theirs: Any, same_leaf: Leaf) -> bool:
    match ours:
        case dict():
            given = {_text(name): value for name, value in theirs.items()} if isinstance(theirs, dict) else None
            return given is not None and ours.keys() == given.keys() and all(
                _tree(ours[name], given[name], same_leaf) for name in ours
            )  # fmt: skip
        case list():
            if not isinstance(theirs, list) or len(ours) != len(theirs):
                return False
            return all(_tree(one, other, same_leaf) for one, other in zip(ours, theirs, strict=True))
    return same_leaf(ours, theirs)


def _leaf(ours: Any, theirs: Any) -> bool:
    match ours:
        case str():
            return bool(ours == _text(theirs))
        case bool() | None:
            return ours is theirs
    if isinstance(theirs, bool) or not isinstance(theirs, (int, float)):
        return False
    return bool(ours == theirs) if isinstance(ours, int) and isinstance(theirs, int) else float(ours) == float(theirs)


def _text(value: Any) -> Any:
    return value.decode() if isinstance(value, bytes) else value


def _geometry(column: Column, ours: Any, theirs: Any) -> bool:
    return bool(theirs == (ours["srid"] or 0).to_bytes(4, "little") + base64.b64decode(ours["wkb"]))


COMPARE: dict[str, Test] = {
    "float": _float,
    "decimal": _decimal,
    **dict.fromkeys(BINARY, _binary),
    "bit": _bit,
    **dict.fromkeys(TEMPORAL, _moment),
    "time": _time,
    "set": _set,
    "json": _json,
    **dict.fromkeys(GEOMETRIES, _geometry),
}


def _zero_date(column: Column, ours: Any, theirs: Any) -> bool:
    return theirs is None and ours is not None and column.type in ("date", "datetime") and (
        "0000" in ours[:4] or "-00" in ours[4:10]
    )  # fmt: skip


# Name: the test, and what is wrong, as the documentation prints it.
KNOWN: dict[str, tuple[Test, str]] = {
    "zero date": (_zero_date, "A zero or partial DATE or DATETIME comes as None."),
    "zero timestamp": (
        lambda c, ours, theirs: c.type == "timestamp" and ours.startswith("0000") and theirs == datetime(1970, 1, 1),
        "A zero TIMESTAMP comes as 1970-01-01.",
    ),
    "year 0": (
        lambda c, ours, theirs: c.type == "year" and ours == 0 and theirs == 1900,
        "YEAR 0 comes as 1900.",
    ),
    "fraction of a negative time": (
        lambda c, ours, theirs: c.type == "time" and explained.negative_time(c, ours, theirs),
        "A TIME below zero with a fraction is wrong.",
    ),
    "empty set": (lambda c, ours, theirs: c.type == "set" and ours == "" and theirs is None, "An empty SET is None."),
    "empty binary": (
        lambda c, ours, theirs: c.type in BINARY and ours == "" and theirs == "",
        "Empty binary data comes as text.",
    ),
    "padding of BINARY": (
        lambda c, ours, theirs: c.type == "binary" and base64.b64decode(ours).rstrip(b"\0") == (theirs or b""),
        "BINARY comes without the zero bytes at its end.",
    ),
    "UUID and INET": (
        lambda c, ours, theirs: c.type in ADDRESSES and explained.address(c, ours, theirs),
        "MariaDB's UUID, INET4 and INET6 are the bytes that are kept, without zeros at their end.",
    ),
    "character set": (
        lambda c, ours, theirs: c.type in (*TEXT, "enum", "set") and explained.text(c, ours, theirs),
        "Text of many character sets is read by a Python codec that differs from the server's table, or left as bytes.",
    ),
    "JSON's opaque values": (
        _json_opaque,
        "DECIMAL, dates and times inside JSON are Python objects, a TIME without its sign; binary data is text.",
    ),
}  # fmt: skip
EVENTS = {
    "compressed transaction": "A compressed transaction is passed by in silence.",
    "tagged GTID": "A GTID with a tag is not read.",
    "partial JSON update": "An update that holds only what differs inside JSON is not read in full.",
    "MariaDB's compressed events": "MariaDB's compressed rows and statements are passed by in silence.",
    "XA": "The rows of an XA transaction come at its PREPARE, also when it is rolled back later.",
    "rolled back": "Rows that a ROLLBACK ends are given.",
    "what it fails on": "A column or event that it does not know, or bytes that its codec refuses, end in an error.",
}
