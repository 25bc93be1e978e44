"""A column's binlog type, metadata and optional metadata -> `contract.schema.Column` and how to read it.

Source: MySQL's source documentation, `mysql::binlog::event::Table_map_event` and `enum_field_types`.
Raises UnsupportedTypeError for a type without an exact wire value, ValueError for impossible metadata.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from contract.schema import Column
from contract.types import GEOMETRIES
from streamer.errors import UnsupportedTypeError
from streamer.protocol.charsets import BINARY, BY_COLLATION, Charset, NoTextError
from streamer.protocol.values.decimals import size_of
from streamer.protocol.values.reader import Field

TINY, SHORT, LONG, FLOAT, DOUBLE, LONGLONG, INT24 = 1, 2, 3, 4, 5, 8, 9
DATE, YEAR, NEWDATE, VARCHAR, BIT, TIMESTAMP2, DATETIME2, TIME2 = 10, 13, 14, 15, 16, 17, 18, 19
TYPED_ARRAY, VECTOR, BOOL, JSON, NEWDECIMAL, ENUM, SET = 20, 242, 244, 245, 246, 247, 248
TINY_BLOB, MEDIUM_BLOB, LONG_BLOB, BLOB, VAR_STRING, STRING, GEOMETRY = 249, 250, 251, 252, 253, 254, 255

BLOB_COMPRESSED, VARCHAR_COMPRESSED = 140, 141  # MariaDB's

NUMERIC = frozenset((TINY, SHORT, INT24, LONG, LONGLONG, FLOAT, DOUBLE, NEWDECIMAL, YEAR))  # with a bit for the sign
TEXTUAL = frozenset((STRING, VAR_STRING, VARCHAR, BLOB, BLOB_COMPRESSED, VARCHAR_COMPRESSED, VECTOR))  # with a charset
WIDTHS = {
    **dict.fromkeys((FLOAT, DOUBLE, BLOB, JSON, GEOMETRY, VECTOR, TIME2, DATETIME2, TIMESTAMP2, BLOB_COMPRESSED), 1),
    **dict.fromkeys((VARCHAR, VARCHAR_COMPRESSED, VAR_STRING, BIT, NEWDECIMAL, STRING, ENUM, SET), 2),
}  # bytes of a type's metadata; none for the others
PLAIN = {
    TINY: "tinyint", SHORT: "smallint", INT24: "mediumint", LONG: "int", LONGLONG: "bigint", FLOAT: "float",
    DOUBLE: "double", DATE: "date", NEWDATE: "date", YEAR: "year",
}  # fmt: skip
FRACTIONAL = {TIME2: "time", DATETIME2: "datetime", TIMESTAMP2: "timestamp"}
NO_TEXT = ("binary", "ucs2")  # character sets whose values may have no Unicode
TEXTS = {1: "tinytext", 2: "text", 3: "mediumtext", 4: "longtext"}
BLOBS = {1: "tinyblob", 2: "blob", 3: "mediumblob", 4: "longblob"}
REFUSED = {0: "decimal (of MySQL 4)", 7: "timestamp (of MySQL 5.5)", 11: "time (of MySQL 5.5)",
           12: "datetime (of MySQL 5.5)", TYPED_ARRAY: "typed array", BOOL: "boolean"}  # fmt: skip


@dataclass(frozen=True)
class Raw:
    """A column as the event's parts tell it. `meta`: the type's own bytes. `collation`: None where it has none.
    `number`: of a geometry its kind, of a VECTOR its dimensions."""

    name: str
    code: int
    meta: bytes
    unsigned: bool
    nullable: bool
    collation: int | None
    members: tuple[bytes, ...]
    number: int = 0


def real_type(code: int, meta: bytes) -> int:
    """ENUM and SET hide in STRING's metadata."""
    return meta[0] if code == STRING and meta[0] in (ENUM, SET) else code


def field(raw: Raw) -> Field:
    """The column and what its reader needs to know."""
    code = real_type(raw.code, raw.meta)
    if code in PLAIN:
        return Field(_column(raw, PLAIN[code], unsigned=raw.unsigned and code != YEAR))
    if code in FRACTIONAL:
        return Field(_column(raw, FRACTIONAL[code], fsp=raw.meta[0]))
    try:
        make = MAKERS[code]
    except KeyError:
        raise unknown(raw.name, code) from None
    return make(raw)


def unknown(column: str, code: int) -> UnsupportedTypeError:
    return refused(column, REFUSED.get(code, f"number {code}"))


def refused(column: str, name: str) -> UnsupportedTypeError:
    hint = "Exclude the table in the pipeline file, or take the column out of it, and start again"
    return UnsupportedTypeError("read", f"column {column}", f"its type, {name}, has no exact wire value yet", hint)


def _column(raw: Raw, kind: str, **facts: object) -> Column:
    return Column.model_validate({"name": raw.name, "type": kind, "nullable": raw.nullable, **facts})


def _decimal(raw: Raw) -> Field:
    precision, scale = raw.meta
    column = _column(raw, "decimal", precision=precision, scale=scale, unsigned=raw.unsigned)
    return Field(column, size_of(precision, scale))


def _bit(raw: Raw) -> Field:
    length = raw.meta[0] + 8 * raw.meta[1]
    return Field(_column(raw, "bit", length=length), (length + 7) // 8)


def _varchar(raw: Raw) -> Field:
    return _string(raw, int.from_bytes(raw.meta, "little"), "varbinary", "varchar")


def _char(raw: Raw) -> Field:
    """A length beyond 255 borrows two bits, inverted, from the type's byte."""
    length = raw.meta[1] | ((raw.meta[0] & 0x30) ^ 0x30) << 4
    return _string(raw, length, "binary", "char")


def _compressed_varchar(raw: Raw) -> Field:
    """The length has a byte more, for how it is compressed."""
    length = int.from_bytes(raw.meta, "little")
    found = _string(raw, length - 1, "varbinary", "varchar")
    return replace(found, size=1 if length < 256 else 2, compressed=True)


def _string(raw: Raw, length: int, binary: str, text: str) -> Field:
    charset, size = _charset(raw), 1 if length < 256 else 2
    if charset is BINARY:
        return Field(_column(raw, binary, length=length), size)
    return Field(_column(raw, text, length=length // charset.width, charset=charset.name), size, charset)


def _blob(raw: Raw) -> Field:
    charset, size = _charset(raw), raw.meta[0]
    if charset is BINARY:
        return Field(_column(raw, BLOBS[size]), size)
    return Field(_column(raw, TEXTS[size], charset=charset.name), size, charset)


def _compressed_blob(raw: Raw) -> Field:
    return replace(_blob(raw), compressed=True)


def _geometry(raw: Raw) -> Field:
    return Field(_column(raw, GEOMETRIES[raw.number]), raw.meta[0])


def _vector(raw: Raw) -> Field:
    return Field(_column(raw, "vector", length=raw.number), raw.meta[0])


def _json(raw: Raw) -> Field:
    return Field(_column(raw, "json"), raw.meta[0])


def _chosen(raw: Raw) -> Field:
    """ENUM or SET."""
    charset = _charset(raw)
    kind = "enum" if raw.meta[0] == ENUM else "set"
    try:
        members = tuple(charset.text(member) for member in raw.members)
    except (UnicodeDecodeError, NoTextError):
        if charset.name not in NO_TEXT:
            raise  # broken bytes
        raise refused(raw.name, f"{kind} of the character set {charset.name} with members that are no text,") from None
    return Field(_column(raw, kind, charset=charset.name, members=members), raw.meta[1])


def _charset(raw: Raw) -> Charset:
    try:
        return BY_COLLATION[raw.collation or 0]
    except KeyError:
        raise refused(raw.name, f"text of the unknown collation {raw.collation},") from None


MAKERS: dict[int, Callable[[Raw], Field]] = {
    NEWDECIMAL: _decimal,
    BIT: _bit,
    VARCHAR: _varchar,
    VAR_STRING: _varchar,
    STRING: _char,
    ENUM: _chosen,
    SET: _chosen,
    BLOB: _blob,
    JSON: _json,
    GEOMETRY: _geometry,
    VECTOR: _vector,
    BLOB_COMPRESSED: _compressed_blob,
    VARCHAR_COMPRESSED: _compressed_varchar,
}
KNOWN = frozenset((*PLAIN, *FRACTIONAL, *MAKERS))
