"""A TABLE_MAP event -> the table's schema and compiled row decoder.

In: the event's bytes behind the table's id and flags. Out: `TableMap`. Raises MissingMetadataError where the
server wrote no column names, UnsupportedTypeError, and ValueError or IndexError for broken bytes.

Source: MySQL's source documentation, `mysql::binlog::event::Table_map_event`.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from itertools import count
from typing import TypeVar

from contract.schema import Column, TableSchema
from streamer.errors import MissingMetadataError, UnsupportedTypeError
from streamer.protocol.columns import ENUM, NUMERIC, SET, TEXTUAL, WIDTHS, YEAR, Raw, field, real_type
from streamer.protocol.compiler import compile_rows
from streamer.protocol.lengths import lenenc, lenencs
from streamer.protocol.model import TableMap
from streamer.protocol.server import NEWEST, Server

SIGNEDNESS, DEFAULT_CHARSET, COLUMN_CHARSET, COLUMN_NAME, SET_MEMBERS, ENUM_MEMBERS = 1, 2, 3, 4, 5, 6
HINT = (
    "Set binlog_row_metadata = 'FULL' (MySQL: SET PERSIST; MariaDB: SET GLOBAL, and in its configuration), then take a "
    "new snapshot of the table and start from a position behind this one"
)
# Keys are compared by their texts: those of a float, from the snapshot and the stream, are only the same number.
INEXACT = ("float", "double")
KEY_HINT = "Exclude the table in the pipeline file, or give it a primary key of exact types"
YEAR_HINT = "Upgrade the server to MySQL 8.0.29 or later, or exclude the table in the pipeline file"
Fact = TypeVar("Fact")
PRIMARY_KEY, PRIMARY_KEY_PREFIX, MEMBERS_DEFAULT_CHARSET, MEMBERS_CHARSET = 8, 9, 10, 11


def names(d: bytes, o: int) -> tuple[str, str, int]:
    """Database, table, and where the columns begin; `o` is behind the table's id and flags."""
    db_end = o + 1 + d[o]
    table_end = db_end + 2 + d[db_end + 1]
    return d[o + 1 : db_end].decode(), d[db_end + 2 : table_end].decode(), table_end + 1


def table_map(d: bytes, server: Server = NEWEST) -> TableMap:
    """`d`: the event's body from the database's name on, without the checksum. `server`: who wrote the file."""
    db, table, o = names(d, 0)
    width, o = lenenc(d, o)
    codes, o = d[o : o + width], o + width
    size, o = lenenc(d, o)
    metas, o = _metas(codes, d[o : o + size]), o + size
    nulls, o = d[o : o + (width + 7) // 8], o + (width + 7) // 8
    optional = dict(_optional(d, o))
    raws = list(_columns(codes, metas, nulls, optional, f"{db}.{table}", server))
    try:
        fields = [field(raw) for raw in raws]
    except UnsupportedTypeError as error:
        error.object += f" of {db}.{table}"
        raise
    columns = tuple(field.column for field in fields)
    if server.mariadb:
        refuse_unclear(columns, f"{db}.{table}")
    key = [columns[n] for n in _key(optional)]
    for column in key:
        if column.type in INEXACT:
            cause = f"its type, {column.type}, is a part of the primary key, and has no one text that tells rows apart"
            raise UnsupportedTypeError("read", f"column {column.name} of {db}.{table}", cause, KEY_HINT)
    schema = TableSchema(db=db, table=table, columns=columns, key=tuple(column.name for column in key))
    decode, source = compile_rows(schema, fields)
    return TableMap(schema, decode, source)


def refuse_unclear(columns: Sequence[Column], table: str) -> None:
    """MariaDB writes UUID, INET6 and INET4 as BINARY of their width."""
    for column in columns:
        if column.type == "binary" and column.length in (4, 16):
            cause = "MariaDB's binlog does not tell BINARY of this width from UUID, INET6 and INET4"
            hint = "Exclude the table in the pipeline file, or make the column a VARBINARY or a CHAR"
            raise UnsupportedTypeError("read", f"column {column.name} of {table}", cause, hint)


def _metas(codes: bytes, raw: bytes) -> list[bytes]:
    metas, at = [], 0
    for code in codes:
        metas.append(raw[at : at + WIDTHS.get(code, 0)])
        at += WIDTHS.get(code, 0)
    if at != len(raw):
        raise ValueError("metadata of columns of unknown types")
    return metas


def _optional(d: bytes, o: int) -> Iterator[tuple[int, bytes]]:
    while o < len(d):
        kind = d[o]
        size, o = lenenc(d, o + 1)
        if o + size > len(d):
            raise ValueError("optional metadata longer than its event")
        yield kind, d[o : o + size]
        o += size


def _columns(
    codes: bytes, metas: Sequence[bytes], nulls: bytes, optional: dict[int, bytes], table: str,
    server: Server,
) -> Iterator[Raw]:  # fmt: skip
    kinds = [real_type(code, meta) for code, meta in zip(codes, metas, strict=True)]
    column_names = [name.decode() for name in lenencs(optional.get(COLUMN_NAME, b""))]
    if len(column_names) != len(codes):
        raise MissingMetadataError(
            "read", f"rows of {table}", "the binlog does not name their columns (binlog_row_metadata is not FULL)", HINT
        )
    unsigned = _unsigned(kinds, optional.get(SIGNEDNESS, b""), server, table)
    collation = _by_place(kinds, TEXTUAL, _collations(optional, DEFAULT_CHARSET, COLUMN_CHARSET))
    collation |= _by_place(kinds, (ENUM, SET), _collations(optional, MEMBERS_DEFAULT_CHARSET, MEMBERS_CHARSET))
    members = _by_place(kinds, (ENUM,), _members(optional.get(ENUM_MEMBERS, b"")))
    members |= _by_place(kinds, (SET,), _members(optional.get(SET_MEMBERS, b"")))
    for n, name in enumerate(column_names):
        nullable = bool(nulls[n // 8] >> n % 8 & 1)
        yield Raw(name, codes[n], metas[n], unsigned.get(n, False), nullable, collation.get(n), members.get(n, ()))


def _unsigned(kinds: Sequence[int], raw: bytes, server: Server, table: str) -> dict[int, bool]:
    """MySQL 8.0 began at some release to write a bit for YEAR, too; a wrong one would shift those behind it."""
    with_year = _by_place(kinds, NUMERIC, _bits(raw))
    without = _by_place(kinds, NUMERIC - {YEAR}, _bits(raw))
    if server.year_has_sign is False:
        return without
    if server.year_has_sign is None and any(with_year[n] != bit for n, bit in without.items()):
        cause = f"of a server {server.version} it is not known which columns behind a YEAR it marks as UNSIGNED"
        raise MissingMetadataError("read", f"rows of {table}", cause, YEAR_HINT)
    return with_year


def _by_place(kinds: Sequence[int], chosen: Container[int], facts: Iterator[Fact]) -> dict[int, Fact]:
    """The facts come one a column of the chosen kinds; their columns' numbers are put before them."""
    return dict(zip((n for n, kind in enumerate(kinds) if kind in chosen), facts, strict=False))


def _collations(optional: dict[int, bytes], default: int, each: int) -> Iterator[int]:
    """Either one for all, with exceptions (column's place, collation), or one a column."""
    if each in optional:
        return _numbers(optional[each])
    numbers = list(_numbers(optional.get(default, b"")))
    exceptions = dict(zip(numbers[1::2], numbers[2::2], strict=False))
    return (exceptions.get(place, numbers[0]) for place in count()) if numbers else iter(())


def _bits(raw: bytes) -> Iterator[bool]:
    """The highest bit first."""
    return (bool(byte >> place & 1) for byte in raw for place in range(7, -1, -1))


def _members(raw: bytes) -> Iterator[tuple[bytes, ...]]:
    o = 0
    while o < len(raw):
        number, o = lenenc(raw, o)
        found = []
        for _ in range(number):
            size, o = lenenc(raw, o)
            found.append(raw[o : o + size])
            o += size
        yield tuple(found)


def _key(optional: dict[int, bytes]) -> list[int]:
    """The primary key's columns by number. Of a key on column prefixes each number comes with the prefix's
    length; the whole columns are then no smaller an identity."""
    if PRIMARY_KEY in optional:
        return list(_numbers(optional[PRIMARY_KEY]))
    return list(_numbers(optional.get(PRIMARY_KEY_PREFIX, b"")))[::2]


def _numbers(raw: bytes) -> Iterator[int]:
    o = 0
    while o < len(raw):
        number, o = lenenc(raw, o)
        yield number
