"""A table's shape as a server's information_schema tells it: what is asked, and what an answer means.

Both of `(db, table)`. A shape from here equals the one that the TABLE_MAP's metadata gives of the same table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Any

from contract.schema import Column, TableSchema
from contract.types import SPELLINGS

FLOAT_BYTES = 4  # of a VECTOR's element
MEMBER = re.compile(r"'((?:[^']|'')*)'")
ESCAPE = re.compile(r"''|\\.", re.DOTALL)  # as COLUMN_TYPE spells a member's characters
CHARSETS = {"utf8": "utf8mb3"}  # as MySQL before 8.0.28 calls it
BYTES = "binary"  # of an ENUM or SET, of which MySQL names no character set then
ESCAPES = {"\\0": "\0", "\\n": "\n", "\\r": "\r"}

COLUMNS = """
SELECT table_schema, table_name, column_name, lower(data_type), lower(column_type) like '%%unsigned%%',
       character_maximum_length, numeric_precision, numeric_scale, datetime_precision, character_set_name,
       is_nullable = 'YES', column_type
FROM information_schema.columns WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position
"""
KEYS = """
SELECT column_name FROM information_schema.statistics
WHERE table_schema = %s AND table_name = %s AND index_name = 'PRIMARY' ORDER BY seq_in_index
"""
# Columns as DOUBLE(10,2), or with ZEROFILL: DATA_TYPE has no digits, and a DOUBLE without has no scale.
ROUNDED = """
SELECT column_name FROM information_schema.columns
WHERE table_schema = %s AND table_name = %s AND data_type = 'double'
AND (numeric_scale IS NOT NULL OR column_type LIKE '%%zerofill%%')
"""
SHORT_YEARS = """
SELECT column_name FROM information_schema.columns
WHERE table_schema = %s AND table_name = %s AND column_type = 'year(2)'
"""
# Follows the last variable of a session's SET. A server may hide the primary keys that it generates from both, and no
# binlog does. MySQL from 8.0.30 on reads it, which has them; to the others, MariaDB too, it is a comment.
SHOWS_GENERATED_KEYS = " /*!80030 , show_gipk_in_create_table_and_information_schema = ON */"
Row = Sequence[Any]


def table(db: str, name: str, columns: Iterable[Row], keys: Iterable[Row]) -> TableSchema | None:
    """Of the answers to COLUMNS and KEYS: version 0; None where there is no such table."""
    found = tuple(map(_column, columns))
    return TableSchema(db=db, table=name, columns=found, key=tuple(str(row[0]) for row in keys)) if found else None


def spelled(row: Row) -> str:
    """COLUMN_TYPE of an answer to COLUMNS."""
    return _text(row[11])


def _column(row: Row) -> Column:
    _, _, name, kind, unsigned, characters, precision, scale, fsp, charset, nullable, _ = row
    kind = _text(kind)
    kind = SPELLINGS.get(kind, kind)
    length = characters if kind in ("char", "varchar", "binary", "varbinary") else None
    if kind == "vector":
        length = characters // FLOAT_BYTES
    return Column(
        name=name,
        type=kind,
        unsigned=bool(unsigned) and kind not in ("enum", "set"),  # a member of those may be called so
        length=int(precision) if kind == "bit" else length,
        precision=int(precision) if kind == "decimal" else None,
        scale=int(scale) if kind == "decimal" else None,
        fsp=int(fsp or 0) if kind in ("time", "datetime", "timestamp") else 0,
        charset=BYTES if charset is None and kind in ("enum", "set") else CHARSETS.get(charset, charset),
        nullable=bool(nullable),
        members=_members(spelled(row)) if kind in ("enum", "set") else (),
    )


def _text(given: str | bytes) -> str:
    return given.decode() if isinstance(given, bytes) else given


def _members(column_type: str) -> tuple[str, ...]:
    return tuple(
        ESCAPE.sub(lambda match: ESCAPES.get(match[0], match[0][1]), member) for member in MEMBER.findall(column_type)
    )
