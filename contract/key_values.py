"""A value of a key as a person writes it down: as records have it, and as a statement's parameter.

The server takes several spellings for one value, and records have one of them: its own. No message repeats a value.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from collections.abc import Callable
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Any

from contract import addresses
from contract.schema import Column

BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
# Months and days that may be 0, or a day that the month has not: a server may have these, and no others.
DATE = r"[0-9]{4}-(0[0-9]|1[0-2])-([0-2][0-9]|3[01])"
MINUTES = r"[0-5][0-9]:[0-5][0-9]"
CLOCK = f"([01][0-9]|2[0-3]):{MINUTES}"
FORMS = {
    "date": DATE, "time": f"-?([0-7]?[0-9]{{2}}|8[0-2][0-9]|83[0-8]):{MINUTES}",
    "datetime": f"{DATE} {CLOCK}", "timestamp": f"{DATE} {CLOCK}",
}  # fmt: skip
ZERO = "0000-00-00 00:00:00"  # of a TIMESTAMP the one that is no moment
HEXADECIMAL = re.compile(r"0x[0-9A-Fa-f\s]*")
BYTES = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")
HALVED = "it has a half of a character, which no server keeps"
MISTAKES = (ValueError, InvalidOperation)  # of what is no value of the column


def value_of(column: Column, value: Any) -> tuple[Any, Any]:
    """The wire value, and the parameter. Raises one of MISTAKES."""
    kind = column.type
    if kind in BITS or kind == "year":
        return (number := _integer(column, value)), number
    if kind == "bit":
        return _bit(column, value)
    if kind in BYTES:
        return _bytes(column, value)
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise ValueError("a text or a number is expected")
    return _SPELLED.get(kind, _text)(column, str(value))


def is_halved(text: str) -> bool:
    """Whether it has a surrogate alone, as JSON's escapes may write one."""
    return any("\ud800" <= one <= "\udfff" for one in text)


def text_of(value: Any) -> str:
    """The text of a value, or of a wire value, on which a mask works."""
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


def _integer(column: Column, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str) or not re.fullmatch(r"\s*-?\d+\s*", str(value)):
        raise ValueError("digits are expected")
    number, bits = int(value), BITS.get(column.type, 16)
    low, high = (
        (0, 2**bits - 1) if column.unsigned or column.type == "year" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    )
    if not low <= number <= high:
        raise ValueError(f"it is beyond {low} to {high}")
    if column.type == "year" and number and not 1901 <= number <= 2155:  # a server takes 99 for 1999
        raise ValueError("it is beyond 1901 to 2155, and not 0")
    return number


def _bit(column: Column, value: Any) -> tuple[Any, Any]:
    width = column.length or 1
    if width == 1:
        truth = {"true": True, "1": True, "false": False, "0": False}.get(str(value).lower())
        if truth is None:
            raise ValueError("true or false is expected")
        return truth, int(truth)
    wire, raw = _bytes(column.model_copy(update={"type": "binary", "length": (width + 7) // 8}), value)
    return wire, int.from_bytes(raw)


def _bytes(column: Column, value: Any) -> tuple[str, bytes]:
    """Of base64, as records have it (and which may begin so, too), or of hexadecimal digits behind 0x."""
    text = str(value)
    try:
        raw = bytes.fromhex(text[2:]) if HEXADECIMAL.fullmatch(text) else base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise ValueError("base64, or hexadecimal digits behind 0x, are expected") from None
    if column.type == "binary" and len(raw) != (column.length or 1):
        raise ValueError(f"it has {len(raw)} bytes, the column has {column.length or 1}")
    return base64.b64encode(raw).decode(), raw


def _decimal(column: Column, text: str) -> tuple[str, str]:
    number, scale = Decimal(text), column.scale or 0
    before = (column.precision or 10) - scale
    # Not by normalize(), nor by quantize(): these round to the context's digits.
    if not number.is_finite() or (number != 0 and _digits_behind(number) > scale):
        raise ValueError(f"it has more than {scale} digits behind the point")
    if number != 0 and number.adjusted() >= before:  # of 1e999999999 the digits are not to be written out
        raise ValueError(f"it has more than {before} digits before the point")
    return (made := f"{number or Decimal():.{scale}f}"), made  # zero has no sign, and no exponent


def _digits_behind(number: Decimal) -> int:
    """Without zeros at the end; of whatever length."""
    _, digits, exponent = number.as_tuple()
    zeros = len(digits) - len("".join(map(str, digits)).rstrip("0"))
    return -int(exponent) - zeros


def _moment(column: Column, text: str) -> tuple[str, str]:
    """With all digits of the column; blanks or ISO 8601 between date and time."""
    zoned = column.type == "timestamp"
    plain = text.replace("T", " ").removesuffix("Z") if column.type in ("datetime", "timestamp") else text
    whole, _, digits = plain.partition(".")
    digits = digits.rstrip("0")
    if not re.fullmatch(FORMS[column.type], whole) or not re.fullmatch("[0-9]*", digits) or len(digits) > column.fsp:
        raise ValueError("it is not written as one")
    if zoned and (whole != ZERO or digits):
        _refuse_no_day(whole[:10])
    if column.type == "time":
        whole = _hours(whole, digits)
    full = whole + (f".{digits:0<{column.fsp}}" if column.fsp else "")
    return f"{full.replace(' ', 'T')}Z" if zoned else full, full


def _hours(whole: str, digits: str) -> str:
    """As records have a TIME: two digits of hours or more, and no sign before nothing."""
    hours, behind = whole.removeprefix("-").split(":", 1)
    text = f"{int(hours):02d}:{behind}"
    return f"-{text}" if whole.startswith("-") and (digits or text != "00:00:00") else text


def _refuse_no_day(text: str) -> None:
    try:
        date.fromisoformat(text)
    except ValueError:  # Python's may repeat the value
        raise ValueError("it is no day of the calendar") from None


def _text(column: Column, text: str) -> tuple[str, str]:
    if is_halved(text):
        raise ValueError(HALVED)
    if column.type == "enum" and text not in ("", *column.members):  # "": what a server keeps of one that is none
        raise ValueError("it is none of its members")
    if column.type == "char":
        text = text.rstrip(" ")  # as the server keeps it
    if column.type in ("char", "varchar") and len(text) > (column.length or 1):
        raise ValueError(f"it has {len(text)} characters, the column has {column.length or 1}")
    return text, text


def _set(column: Column, text: str) -> tuple[str, str]:
    """The members in the order of the column."""
    given = set(text.split(",")) if text else set()
    if not given <= {*column.members}:
        raise ValueError("not each is one of its members")
    return (made := ",".join(one for one in column.members if one in given)), made


def _uuid(column: Column, text: str) -> tuple[str, str]:
    digits = text.replace("-", "")
    if not re.fullmatch(r"[0-9A-Fa-f]{32}", digits):
        raise ValueError("32 hexadecimal digits are expected")
    return (made := addresses.uuid(bytes.fromhex(digits))), made


def _inet(column: Column, text: str) -> tuple[str, str]:
    of, made = (
        (ipaddress.IPv4Address, addresses.inet4) if column.type == "inet4" else (ipaddress.IPv6Address, addresses.inet6)
    )
    try:
        found = made(of(text.replace("%", " ")).packed)  # Python takes the name of an interface behind it
    except ValueError:  # Python's repeats the value
        raise ValueError("it is not written as one") from None
    return found, found


_SPELLED: dict[str, Callable[[Column, str], tuple[str, str]]] = {
    "decimal": _decimal, **dict.fromkeys(FORMS, _moment), "set": _set, "uuid": _uuid,
    **dict.fromkeys(("inet4", "inet6"), _inet),
}  # fmt: skip
