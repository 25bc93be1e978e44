"""Where a value of ours may differ from Debezium's: the cases, and the only ones. docs/debezium.md prints each with its
reason, under the same name, which tests/docs/test_debezium.py checks.
"""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Callable
from typing import Any

from contract.schema import Column
from contract.types import GEOMETRIES
from streamer.protocol.charsets import BY_NAME

Allows = Callable[[Column, Any, Any], bool]
# Debezium asks Java for a character set of a like name, or takes it for Latin-1; ours are as the server converts them.
LATIN = "latin-1"
TAKEN_FOR = {
    "armscii8": LATIN, "cp866": "cp866", "dec8": LATIN, "eucjpms": "euc_jp", "euckr": "euc_kr", "geostd8": LATIN,
    "greek": "iso8859_7", "hebrew": "iso8859_8", "hp8": LATIN, "keybcs2": "cp852", "koi8u": "koi8_r", "latin1": LATIN,
    "sjis": "shift_jis", "swe7": LATIN,
}  # fmt: skip
LOST = "\ufffd"  # what Java makes of bytes that it does not know
# Fields of the envelope and of its source that only one of the two has; `name`, `version` and `ts_ms` are each one's.
OURS_ALONE = {"seq", "schema"}
THEIRS_ALONE = {"sequence", "ts_ns"}
ENVELOPE_THEIRS_ALONE = {"ts_us", "ts_ns"}


def allowed(column: Column, ours: Any, theirs: Any) -> str | None:
    """The name of the difference; None where it is not allowed."""
    return next((name for name, allows in DIFFERENCES.items() if allows(column, ours, theirs)), None)


def _unsigned(column: Column, ours: Any, theirs: Any) -> bool:
    return (column.type, column.unsigned) == ("bigint", True) and int.from_bytes(base64.b64decode(theirs)) == ours


def _bit(column: Column, ours: Any, theirs: Any) -> bool:
    return column.type == "bit" and base64.b64decode(ours)[::-1] == base64.b64decode(theirs)


def _iso(column: Column, ours: str) -> str:
    """With a T, without zeros at the fraction's end, in UTC."""
    text = ours.replace(" ", "T").removesuffix("Z")
    return (text.rstrip("0").rstrip(".") if column.fsp else text) + "Z"


def _zone(column: Column, ours: Any, theirs: Any) -> bool:
    return column.type in ("date", "datetime", "time", "timestamp") and theirs == _iso(column, ours)


def _hours(column: Column, ours: Any, theirs: Any) -> bool:
    if column.type != "time":
        return False
    beyond = ours.startswith("-") or int(ours.partition(":")[0]) >= 24
    return beyond and (theirs is None or (ours.startswith("24:00:00") and theirs == "00:00:00Z"))


def _zero(column: Column, ours: Any, theirs: Any) -> bool:
    dates = ("date", "datetime", "timestamp")
    return column.type in dates and theirs is None and re.match(r"0000-|\d{4}-00-|\d{4}-\d\d-00", ours) is not None


def _early(column: Column, ours: Any, theirs: Any) -> bool:
    return column.type == "date" and ours == "0001-01-01" and theirs == "2001-01-01Z"


def _year(column: Column, ours: Any, theirs: Any) -> bool:
    return (column.type, ours, theirs) == ("year", 0, 1900)


def _float(column: Column, ours: Any, theirs: Any) -> bool:
    return column.type == "float" and struct.pack("<f", ours) == struct.pack("<f", theirs)


def _enum(column: Column, ours: Any, theirs: Any) -> bool:
    return column.type == "enum" and theirs == re.sub(r"[\\,]", r"\\\g<0>", ours)


def _charset(column: Column, ours: Any, theirs: Any) -> bool:
    """The bytes that theirs were made of give ours, by the column's own character set."""
    if column.charset not in TAKEN_FOR:
        return False
    charset, codec = BY_NAME[column.charset], TAKEN_FOR[column.charset]
    if theirs.replace(LOST, "").encode(codec, "ignore").decode(codec) != theirs.replace(LOST, ""):
        return False
    if charset.width == 1:
        pairs = zip(ours, theirs, strict=True)
        return all(their == LOST or charset.text(their.encode(codec)) == our for our, their in pairs)
    first, *others = [charset.text(piece.encode(codec)) for piece in re.split(f"{LOST}+", theirs)]
    # Of two bytes that Java does not know together, the second may be left, as a letter of its own.
    pattern = re.escape(first) + "".join(f".+({re.escape(text[:1])})?{re.escape(text[1:])}" for text in others)
    return re.fullmatch(pattern, ours, re.DOTALL) is not None


def _point(column: Column, ours: Any, theirs: Any) -> bool:
    return column.type == "point" and {"wkb": theirs["wkb"], "srid": theirs["srid"] or 0} == ours


def _srid(column: Column, ours: Any, theirs: Any) -> bool:
    return column.type in GEOMETRIES and ours["srid"] == 0 and theirs == {**ours, "srid": None}


def _json_text(column: Column, ours: Any, theirs: Any) -> bool:
    return column.type == "json" and json.loads(ours, parse_int=float) == json.loads(theirs, parse_int=float)


def _json_opaque(column: Column, ours: Any, theirs: Any) -> bool:
    return column.type == "json" and _without_texts(json.loads(ours)) == _without_texts(json.loads(theirs))


def _without_texts(tree: Any) -> Any:
    if isinstance(tree, dict):
        return {name: _without_texts(value) for name, value in tree.items()}
    if isinstance(tree, list):
        return [_without_texts(value) for value in tree]
    return "" if isinstance(tree, str) else tree


def _default(column: Column, ours: Any, theirs: Any) -> bool:
    return (column.name, ours, theirs) == ("日本", None, 7)


DIFFERENCES: dict[str, Allows] = {
    "NULL in a column with a default": _default,
    "BIGINT UNSIGNED": _unsigned,
    "BIT": _bit,
    "zero and partial dates": _zero,
    "TIME below zero or of a day and more": _hours,
    "zone and fraction": _zone,
    "years of one or two digits": _early,
    "YEAR 0": _year,
    "FLOAT": _float,
    "ENUM with a comma or a backslash": _enum,
    "character sets": _charset,
    "POINT": _point,
    "geometry without SRID": _srid,
    "JSON's text": _json_text,
    "dates, times and binary data inside JSON": _json_opaque,
}
