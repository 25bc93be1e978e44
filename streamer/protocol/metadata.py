"""The columns of a TABLE_MAP event: their types, and the optional metadata that names and describes them.

Raises MissingMetadataError where the server wrote no names, UnsupportedTypeError for a type whose metadata has no known
length, and ValueError or IndexError for broken bytes.

Source: MySQL's source documentation, `mysql::binlog::event::Table_map_event`.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from itertools import count
from typing import TypeVar

from streamer.errors import MissingMetadataError
from streamer.protocol.columns import (
    ENUM,
    GEOMETRY,
    KNOWN,
    NUMERIC,
    SET,
    TEXTUAL,
    VECTOR,
    WIDTHS,
    YEAR,
    Raw,
    real_type,
    unknown,
)
from streamer.protocol.lengths import lenenc, lenencs
from streamer.protocol.refusals import ANEW
from streamer.protocol.server import Server

SIGNEDNESS, DEFAULT_CHARSET, COLUMN_CHARSET, COLUMN_NAME, SET_MEMBERS, ENUM_MEMBERS, GEOMETRY_KIND = range(1, 8)
PRIMARY_KEY, PRIMARY_KEY_PREFIX, MEMBERS_DEFAULT_CHARSET, MEMBERS_CHARSET, _VISIBLE, DIMENSIONS = range(8, 14)
HINT = (
    f"Set binlog_row_metadata = 'FULL' (MySQL: SET PERSIST; MariaDB: SET GLOBAL, and in its configuration); then {ANEW}"
)
YEAR_HINT = "Upgrade the server to MySQL 8.0.29 or later, or exclude the table in the pipeline file"
Fact = TypeVar("Fact")


def columns(d: bytes, o: int, table: str, server: Server) -> tuple[list[Raw], list[int]]:
    """The columns, and the numbers of those of the primary key in key order; `o` is behind the table's name."""
    width, o = lenenc(d, o)
    codes, o = d[o : o + width], o + width
    size, o = lenenc(d, o)
    raw, o = d[o : o + size], o + size
    nulls, o = d[o : o + (width + 7) // 8], o + (width + 7) // 8
    optional = dict(_optional(d, o))
    metas = _metas(codes, raw, _names(optional), table)
    return list(_columns(codes, metas, nulls, optional, table, server)), _key(optional)


def _metas(codes: bytes, raw: bytes, names: Sequence[str], table: str) -> list[bytes]:
    metas, at = [], 0
    for code in codes:
        metas.append(raw[at : at + WIDTHS.get(code, 0)])
        at += WIDTHS.get(code, 0)
    if at == len(raw):
        return metas
    for n, code in enumerate(codes):
        if code not in KNOWN:  # how long its metadata is, nobody can say
            raise unknown(f"{names[n] if n < len(names) else n + 1} of {table}", code)
    raise ValueError("metadata longer or shorter than its columns' types have")


def _names(optional: dict[int, bytes]) -> list[str]:
    return [name.decode() for name in lenencs(optional.get(COLUMN_NAME, b""))]


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
    column_names = _names(optional)
    if len(column_names) != len(codes):
        raise MissingMetadataError(
            "read", f"rows of {table}", "the binlog does not name their columns (binlog_row_metadata is not FULL)", HINT
        )
    unsigned = _unsigned(kinds, optional.get(SIGNEDNESS, b""), server, table)
    textual = TEXTUAL | {GEOMETRY} if server.mariadb else TEXTUAL  # it has a charset there: binary
    collation = _by_place(kinds, textual, _collations(optional, DEFAULT_CHARSET, COLUMN_CHARSET))
    collation |= _by_place(kinds, (ENUM, SET), _collations(optional, MEMBERS_DEFAULT_CHARSET, MEMBERS_CHARSET))
    members = _by_place(kinds, (ENUM,), _members(optional.get(ENUM_MEMBERS, b"")))
    members |= _by_place(kinds, (SET,), _members(optional.get(SET_MEMBERS, b"")))
    number = _by_place(kinds, (GEOMETRY,), _numbers(optional.get(GEOMETRY_KIND, b"")))
    number |= _by_place(kinds, (VECTOR,), _numbers(optional.get(DIMENSIONS, b"")))
    for n, name in enumerate(column_names):
        nullable = bool(nulls[n // 8] >> n % 8 & 1)
        yield Raw(
            name, codes[n], metas[n], unsigned.get(n, False), nullable, collation.get(n), members.get(n, ()),
            number.get(n, 0),
        )  # fmt: skip


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
