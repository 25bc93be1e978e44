"""A schema's columns -> how each is read: what a TABLE_MAP tells besides, worked out from the column alone.

The schema topic keeps no event's bytes; the sizes that the reader of a column needs follow from its type, length,
members and character set. Raises UnsupportedTypeError for a type that has no reader.
"""

from __future__ import annotations

from contract.schema import Column
from contract.types import GEOMETRIES
from streamer.protocol import columns
from streamer.protocol.charsets import BY_NAME
from streamer.protocol.columns import BLOBS, TEXTS
from streamer.protocol.compiler import READERS
from streamer.protocol.unclear import OLD_FORMAT, OLD_TIMES
from streamer.protocol.values.decimals import size_of
from streamer.protocol.values.reader import Field

WIDE = 256  # bytes from which on a length takes two
COMPRESSED = " COMPRESSED*/"  # as MariaDB marks such a column, in a comment for servers that know it
PREFIXES = {name: size for names in (TEXTS, BLOBS) for size, name in names.items()}


def field(column: Column, spelled: str = "") -> Field:
    """`spelled`: COLUMN_TYPE, by which MariaDB tells what the column's type does not."""
    if column.type not in READERS:
        raise columns.refused(column.name, column.type)
    charset = BY_NAME.get(column.charset) if column.charset else None
    compressed = spelled.endswith(COMPRESSED)
    old_format = column.type in OLD_TIMES.values() and OLD_FORMAT in spelled
    size = _size(column, charset.width if charset else 1, compressed)
    return Field(column, size, charset, compressed, old_format)


def _size(column: Column, width: int, compressed: bool) -> int:
    match column.type:
        case "decimal":
            return size_of(column.precision or 10, column.scale or 0)
        case "bit":
            return ((column.length or 1) + 7) // 8
        case "char" | "varchar" | "binary" | "varbinary":
            # Compressed, it has a byte more, for how.
            return 1 if (column.length or 0) * width + compressed < WIDE else 2
        case "enum":
            return 1 if len(column.members) < WIDE else 2
        case "set":
            size = (len(column.members) + 7) // 8
            return size if size <= 4 else 8
        case "uuid" | "inet4" | "inet6":
            return 1
        case "json" | "vector":
            return 4
        case kind if kind in GEOMETRIES:
            return 4
    return PREFIXES.get(column.type, 0)
