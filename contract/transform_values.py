"""Whether a text that a transform made is a value of its column: what the lake would read as none, or stop at, is not.

The forms are those of the wire (contract/types.py).
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from datetime import date

from contract.schema import Column

FRACTION = r"(?:\.\d{1,6})?"
CLOCK = rf"(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d{FRACTION}"
DAY = re.compile(r"(\d{4})-(\d\d)-(\d\d)")
DATETIME = re.compile(rf"(\d{{4}}-\d\d-\d\d) {CLOCK}")
TIMESTAMP = re.compile(rf"(\d{{4}}-\d\d-\d\d)(?:T{CLOCK}Z| {CLOCK})")
TIME = re.compile(rf"-?\d{{2,3}}:[0-5]\d:[0-5]\d{FRACTION}")
NOTHING = ("00", "0000")  # of a zero or partial date
BYTES = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob", "bit")


def day(text: str) -> bool:
    found = DAY.fullmatch(text)
    if found is None:
        return False
    if any(part in NOTHING for part in found.groups()):
        return int(found[2]) <= 12 and int(found[3]) <= 31
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def moment(form: re.Pattern[str]) -> Callable[[str], bool]:
    return lambda text: (found := form.fullmatch(text)) is not None and day(found[1])


def base64_text(text: str) -> bool:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def digits(column: Column) -> Callable[[str], bool]:
    """A decimal that the column has room for."""
    precision, scale = column.precision or 10, column.scale or 0
    whole = rf"0*\d{{1,{precision - scale}}}" if precision > scale else "0+"
    form = re.compile(f"-?{whole}" + (rf"(?:\.\d{{1,{scale}}})?" if scale else ""))
    return lambda text: form.fullmatch(text) is not None


def form(column: Column) -> Callable[[str], bool] | None:
    """What tells a text that is of the column's type; None where any text is one."""
    match column.type:
        case "date":
            return day
        case "datetime":
            return moment(DATETIME)
        case "timestamp":
            return moment(TIMESTAMP)
        case "time":
            return lambda text: TIME.fullmatch(text) is not None
        case "decimal":
            return digits(column)
        case kind if kind in BYTES:
            return base64_text
    return None
