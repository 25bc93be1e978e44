"""How one column is read: pieces of Python from which compiler.py writes a table's row decoder.

In the pieces, `d` is the buffer and `o` the offset. `{0}`, `{1}` stand for the fields of a fixed-width column's
`layout`; `{v}` for a variable-width column's value (bytes), or for a name that `first` sets; `{x}` for `bound`, an
object that belongs to the column.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct, calcsize

from contract.schema import Column
from streamer.protocol.charsets import Charset


@dataclass(frozen=True)
class Field:
    """A column as the TABLE_MAP tells it. `size`: bytes of its length prefix, or of its fixed width, where the
    type alone does not say; else 0. `compressed`: the server may keep its values compressed.
    `old_format`: a time as MariaDB kept it before 10.1."""

    column: Column
    size: int = 0
    charset: Charset | None = None
    compressed: bool = False
    old_format: bool = False


@dataclass(frozen=True)
class Reader:
    """`form`: the wire value as a bytes template; `args`: expressions that fill it.

    Either `layout` (struct codes of the whole fixed width, big-endian where `big`) and `first` (statements that come
    before the expressions), or `read` (statements that set `{v}` and advance `o`). `escaped`: `{v}` is UTF-8 that has
    yet to be escaped.
    """

    form: str
    args: tuple[str, ...]
    layout: str = ""
    big: bool = False
    first: tuple[str, ...] = ()
    read: tuple[str, ...] = ()
    escaped: bool = False
    bound: object = None

    @property
    def fields(self) -> int:
        """How many fields `layout` has."""
        struct = Struct("<" + self.layout)
        return len(struct.unpack(bytes(struct.size)))

    @property
    def width(self) -> int:
        return calcsize("<" + self.layout)


def prefixed(size: int) -> tuple[str, ...]:
    """Reads `{v}`: bytes behind a little-endian length of `size` bytes. Raises ValueError where that has none."""
    if not size:
        raise ValueError("a value's length has no bytes")
    length = " | ".join(f"d[o + {i}] << {8 * i}" if i else "d[o]" for i in range(size))
    return (f"n = o + {size} + {f'({length})' if size > 1 else length}", f"{{v}} = d[o + {size}:n]", "o = n")
