"""Where a value of ours may differ from Debezium's: the cases, and the only ones. docs/debezium.md prints each with its
reason, under the same name, which tests/docs/test_debezium.py checks.
"""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

from contract.schema import Column
from contract.types import GEOMETRIES
from streamer.protocol.charsets import BY_NAME

Allows = Callable[[Column, Any, Any], bool]
# Debezium asks Java for a character set of a like name, or takes it for Latin-1; ours are as the server converts them.
LATIN = "latin-1"
TAKEN_FOR = {
    "armscii8": LATIN, "cp866": "cp866", "cp932": "utf-8", "dec8": LATIN, "eucjpms": "euc_jp", "euckr": "euc_kr",
    "geostd8": LATIN, "greek": "iso8859_7", "hebrew": "iso8859_8", "hp8": LATIN, "keybcs2": "cp852", "koi8u": "koi8_r",
    "latin1": LATIN, "sjis": "shift_jis", "swe7": LATIN,
}  # fmt: skip
LOST = "\ufffd"  # what Java makes of bytes that it does not know
# Fields of the envelope and of its source that only one of the two has; `name`, `version` and `ts_ms` are each one's.
OURS_ALONE = {"seq", "schema"}
THEIRS_ALONE = {"sequence", "ts_ns"}
ENVELOPE_THEIRS_ALONE = {"ts_us", "ts_ns"}


def expected(flavor: str, differences: Mapping[str, Allows]) -> set[str]:
    """Those of the list that its databases meet."""
    others = {name for name in differences if name.endswith("(MariaDB)")} if flavor == "mysql" else OF_MYSQL_ALONE
    return set(differences) - others


def allowed(column: Column, ours: Any, theirs: Any, differences: Mapping[str, Allows] | None = None) -> str | None:
    """The name of the difference; None where it is not allowed."""
    among = DIFFERENCES if differences is None else differences
    return next((name for name, allows in among.items() if allows(column, ours, theirs)), None)


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


def _zero_timestamp(column: Column, ours: Any, theirs: Any) -> bool:
    """Ours is null in Debezium's form."""
    if column.type != "timestamp" or not (ours is None or ours.startswith("0000-00-00T00:00:00")):
        return False
    return re.fullmatch(r"1970-01-01T00:00:00(\.0+)?Z", str(theirs)) is not None


def _uuid(column: Column, ours: Any, theirs: Any) -> bool:
    """The binlog leaves out zero bytes at the end; theirs has as many at the beginning."""
    if column.type != "uuid":
        return False
    kept = UUID(ours).bytes.rstrip(b"\0")
    return kept.rjust(16, b"\0") == UUID(theirs).bytes


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
    """Only such a text may differ, and only as Debezium prints that very value."""
    return column.type == "json" and _alike(json.loads(ours), json.loads(theirs))


def _alike(ours: Any, theirs: Any) -> bool:
    if isinstance(ours, dict) and isinstance(theirs, dict):
        return ours.keys() == theirs.keys() and all(_alike(value, theirs[name]) for name, value in ours.items())
    if isinstance(ours, list) and isinstance(theirs, list):
        return len(ours) == len(theirs) and all(map(_alike, ours, theirs))
    return bool(ours == theirs) or (isinstance(ours, str) and theirs in _printed(ours))


def _printed(ours: str) -> set[str]:
    """What the text is in Debezium's JSON, where it is a date with a time, a time, or binary data."""
    if opaque := re.fullmatch(r"base64:type\d+:([A-Za-z0-9+/=\n]*)", ours):
        return {opaque[1].replace("\n", "")}
    if re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{6}", ours):
        return {ours.rstrip("0").rstrip(".")}
    if found := re.fullmatch(r"(-?)(\d+):(\d\d):(\d\d)\.(\d{6})", ours):
        sign, *parts = found.groups()
        return {_java_time(sign == "-", *map(int, parts))}
    return set()


def _java_time(negative: bool, hours: int, minutes: int, seconds: int, micros: int) -> str:
    """MySQL keeps a TIME as one number. Debezium's reader cuts a negative one into parts that are each rounded and
    signed for themselves, and pads them as if they were none."""
    packed = (((hours << 12) | (minutes << 6) | seconds) << 24) + micros
    raw = -packed if negative else packed
    whole = raw >> 24

    def rest(number: int, of: int) -> int:  # Java's %, with the sign of the number
        return abs(number) % of * (-1 if number < 0 else 1)

    hour = rest(whole >> 12, 1 << 10) * (-1 if whole < 0 else 1)
    parts = (hour, rest(whole >> 6, 1 << 6), rest(whole, 1 << 6))
    text = ":".join(f"{part}" if part >= 10 else f"0{part}" for part in parts)
    fraction = rest(raw, 1 << 24)
    padded = f"{fraction:06}" if fraction > 0 else f"00000{fraction}"
    return f"{text}.{padded.rstrip('0')}" if fraction else text


def _default(column: Column, ours: Any, theirs: Any) -> bool:
    return (column.name, ours, theirs) == ("日本", None, 7)


DIFFERENCES: dict[str, Allows] = {
    "NULL in a column with a default": _default,
    "BIGINT UNSIGNED": _unsigned,
    "BIT": _bit,
    "zero and partial dates": _zero,
    "zero TIMESTAMP (MariaDB)": _zero_timestamp,
    "TIME below zero or of a day and more": _hours,
    "zone and fraction": _zone,
    "years of one or two digits": _early,
    "YEAR 0": _year,
    "FLOAT": _float,
    "ENUM with a comma or a backslash": _enum,
    "character sets": _charset,
    "POINT": _point,
    "geometry without SRID": _srid,
    "UUID that ends with zero bytes (MariaDB)": _uuid,
    "JSON's text": _json_text,
    "dates, times and binary data inside JSON": _json_opaque,
}


def _first_century(column: Column, ours: Any, theirs: Any) -> bool:
    """The day 0001-01-01, in days or as a text, and 2001-01-01."""
    return column.type == "date" and (ours, theirs) in ((-719_162, 11_323), ("0001-01-01Z", "2001-01-01Z"))


def _whole_day(column: Column, ours: Any, theirs: Any) -> bool:
    return (column.type, ours, theirs) == ("time", None, "00:00:00Z")


# In Debezium's form with schemas.
FORMED_DIFFERENCES: dict[str, Allows] = {
    "NULL in a column with a default": _default,
    "zero TIMESTAMP (MariaDB)": _zero_timestamp,
    "TIME `24:00:00`": _whole_day,
    "years of one or two digits": _first_century,
    "YEAR 0": _year,
    "FLOAT": _float,
    "ENUM with a comma or a backslash": _enum,
    "character sets": _charset,
    "UUID that ends with zero bytes (MariaDB)": _uuid,
    "JSON's text": _json_text,
    "dates, times and binary data inside JSON": _json_opaque,
}
# MariaDB's JSON is the text that was written.
OF_MYSQL_ALONE = {"JSON's text", "dates, times and binary data inside JSON"}
COMMITTED = "`ts_ms` in `source` (MariaDB)"
BESIDE_VALUES = ("`default` in a schema", "`sequence` in `source`", COMMITTED)
TIMES = {"ts_ms": 1, "ts_us": 1_000, "ts_ns": 1_000_000}  # parts of a millisecond
# Of an XA transaction that was prepared ours are of its commit, Debezium's of its preparation.
PREPARED = {"gtid", "pos", *TIMES}


def of_xa(ours: Mapping[str, Any], theirs: Mapping[str, Any], phases: int) -> bool:
    """Whether both sources tell of one XA transaction: theirs is the one before, where it had two phases, and to
    Debezium's connector for MySQL it has no thread."""
    names = set(ours) & set(theirs) - {"version", "name", "sequence", "thread"}
    apart = PREPARED if phases == 2 else set(TIMES) if ours["connector"] == "mariadb" else set()
    ours_behind = _number(ours["gtid"]) - _number(theirs["gtid"])
    return (
        all(ours[name] == theirs[name] for name in names - apart)
        and theirs["thread"] is None
        and theirs["ts_ms"] <= ours["ts_ms"]
        and (ours_behind, ours["pos"] > theirs["pos"]) == (phases - 1, phases == 2)
    )


def _number(gtid: str) -> int:
    return int(re.split("[:-]", gtid)[-1])


def at_its_statement(ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> bool:
    """Of MariaDB: whether theirs is at or before ours, which is at the commit, in every unit."""
    both = all(
        each[name] == each["ts_ms"] * parts for each in (ours, theirs) for name, parts in TIMES.items() if name in each
    )
    return both and theirs["ts_ms"] <= ours["ts_ms"]
