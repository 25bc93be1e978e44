"""The keys of an erasure: as a person writes them down, as records have them, and as the source is asked for them.

A key is written as JSON, an object of its columns with the values that records have (`{"region": "eu", "n": 7}`), or,
where it has one column, as that value alone (`7`, `bob@example.org`). Values are the source's: where a column of the
key is masked, the mask is put on here, by the code of the streamer. No message repeats a value.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from contract import masks
from contract.masks import Mask
from contract.schema import Column, TableSchema

BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
DATE = r"\d{4}-\d{2}-\d{2}"
CLOCK = r"\d{2}:\d{2}:\d{2}"
FORMS = {
    "date": DATE, "time": r"-?\d{2,3}:\d{2}:\d{2}", "datetime": f"{DATE} {CLOCK}", "timestamp": f"{DATE} {CLOCK}",
}  # fmt: skip
BYTES = ("binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob")


class ErasedKeyError(ValueError):
    """What is no key of the table."""


@dataclass(frozen=True)
class ErasedKey:
    """`text`: the key of records, JSON. `values`: the source's, by column, as a statement's parameters."""

    text: str
    values: dict[str, Any]


def keys_of(given: str, schema: TableSchema, secret: bytes = b"") -> list[ErasedKey]:
    """The keys of a JSON text: one, or a list of them. `schema`: the table's as it is shown; `secret`: of its hashes.
    Raises ErasedKeyError."""
    name = f"{schema.db}.{schema.table}"
    if not schema.key:
        raise ErasedKeyError(f"{name} has no key, so that no row of it can be named: choose columns of it in keys")
    items = written(given, name)
    if not items:
        raise ErasedKeyError(f"{name}: no key is given; its key is ({', '.join(schema.key)})")
    return [_key(item, at, schema, secret) for at, item in enumerate(items, 1)]


def written(given: str, name: str) -> list[Any]:
    """The keys as they are written down: a value each, or an object of columns. `name`: of the table, of which nothing
    need be known. Raises ErasedKeyError."""
    try:
        read = json.loads(given, parse_float=Decimal)
    except ValueError:
        read = given  # a value alone
    items = [item for item in (read if isinstance(read, list) else [read]) if item not in ("", None)]
    return [_opened(item, _where(name, at)) for at, item in enumerate(items, 1)]


def _where(name: str, at: int) -> str:
    return f"{name}: key {at}"


def _opened(item: Any, where: str) -> Any:
    """Of a text that is an object the object."""
    if not isinstance(item, str) or not item.lstrip().startswith("{"):
        return item
    try:
        return json.loads(item, parse_float=Decimal)
    except ValueError as problem:
        raise ErasedKeyError(f"{where} is no JSON: {problem}") from None


def _key(item: Any, at: int, schema: TableSchema, secret: bytes) -> ErasedKey:
    where = _where(f"{schema.db}.{schema.table}", at)
    row = _row(item, schema, where)
    wires, values = {}, {}
    for name in schema.key:
        column = schema.column(name)
        try:
            wires[name], values[name] = _masked(column, row[name], secret) if column.mask else _plain(column, row[name])
        except (ValueError, InvalidOperation) as problem:
            raise ErasedKeyError(f"{where}: its {name} is no {told(column)}: {problem}") from None
    return ErasedKey(json.dumps(wires, separators=(",", ":"), ensure_ascii=False), values)


def _row(item: Any, schema: TableSchema, where: str) -> dict[str, Any]:
    wanted = ", ".join(schema.key)
    if not isinstance(item, dict):
        if len(schema.key) > 1:
            raise ErasedKeyError(f"{where} is one value, and the key has the columns {wanted}: write an object of them")
        return {schema.key[0]: item}
    if set(item) != set(schema.key):
        raise ErasedKeyError(f"{where} has the columns {', '.join(item) or 'none'}; the key has {wanted}")
    return item


def told(column: Column) -> str:
    return f"{column.type}{' unsigned' if column.unsigned else ''}"


def _masked(column: Column, value: Any, secret: bytes) -> tuple[Any, Any]:
    text = {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)
    if not isinstance(value, str | int):
        raise ValueError("a text or a number is expected")
    return masks.text_of(Mask("hash", 0, secret))(text), value


def _plain(column: Column, value: Any) -> tuple[Any, Any]:
    """The wire value, and the parameter."""
    kind = column.type
    if kind in BITS or kind == "year":
        return (number := _integer(column, value)), number
    if kind == "bit":
        return _bit(column, value)
    if kind in BYTES:
        return _bytes(column, value)
    if isinstance(value, bool) or not isinstance(value, str | int | Decimal):
        raise ValueError("a text or a number is expected")
    made: Callable[[Column, str], tuple[str, str]] = {"decimal": _decimal, **dict.fromkeys(FORMS, _moment)}.get(
        kind, _text
    )
    return made(column, str(value))


def _integer(column: Column, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | str) or not re.fullmatch(r"\s*-?\d+\s*", str(value)):
        raise ValueError("digits are expected")
    number, bits = int(value), BITS.get(column.type, 16)
    low, high = (
        (0, 2**bits - 1) if column.unsigned or column.type == "year" else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    )
    if not low <= number <= high:
        raise ValueError(f"it is beyond {low} to {high}")
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
    """Of base64, as records have it, or of hexadecimal digits behind 0x."""
    text = str(value)
    try:
        raw = bytes.fromhex(text[2:]) if text[:2] == "0x" else base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        raise ValueError("base64, or hexadecimal digits behind 0x, are expected") from None
    if column.type == "binary" and len(raw) != (column.length or 1):
        raise ValueError(f"it has {len(raw)} bytes, the column has {column.length or 1}")
    return base64.b64encode(raw).decode(), raw


def _decimal(column: Column, text: str) -> tuple[str, str]:
    number, scale = Decimal(text), column.scale or 0
    if not number.is_finite() or -int(number.normalize().as_tuple().exponent) > scale:
        raise ValueError(f"it has more than {scale} digits behind the point")
    return (made := f"{number:.{scale}f}"), made


def _moment(column: Column, text: str) -> tuple[str, str]:
    """With all digits of the column; blanks or ISO 8601 between date and time."""
    zoned = column.type == "timestamp"
    plain = text.replace("T", " ").removesuffix("Z") if column.type in ("datetime", "timestamp") else text
    whole, _, digits = plain.partition(".")
    if not re.fullmatch(FORMS[column.type], whole) or not re.fullmatch(r"\d*", digits) or len(digits) > column.fsp:
        raise ValueError("it is not written as one")
    full = whole + (f".{digits:0<{column.fsp}}" if column.fsp else "")
    return f"{full.replace(' ', 'T')}Z" if zoned else full, full


def _text(column: Column, text: str) -> tuple[str, str]:
    if column.type == "enum" and text not in column.members:
        raise ValueError("it is none of its members")
    if column.type in ("char", "varchar") and len(text) > (column.length or 1):
        raise ValueError(f"it has {len(text)} characters, the column has {column.length or 1}")
    return text, text
