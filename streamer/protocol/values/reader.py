"""How one column is read: pieces of Python from which compiler.py writes a table's row decoder.

In the pieces, `d` is the buffer and `o` the offset. `{0}`, `{1}` stand for the fields of a fixed-width column's
`layout`; `{v}` for a variable-width column's value (bytes); `{x}` for `bound`, an object that belongs to the column.
"""

from __future__ import annotations

from dataclasses import dataclass
from struct import Struct

from contract.schema import Column
from streamer.protocol.charsets import Charset


@dataclass(frozen=True)
class Field:
    """A column as the TABLE_MAP tells it. `size`: bytes of its length prefix, or of its fixed width, where the
    type alone does not say; else 0."""

    column: Column
    size: int = 0
    charset: Charset | None = None


@dataclass(frozen=True)
class Reader:
    """`form`: the wire value as a bytes template; `args`: expressions that fill it. Either `layout` (struct codes,
    little-endian, of the whole fixed width) or `read` (statements that set `{v}` and advance `o`)."""

    form: str
    args: tuple[str, ...]
    layout: str = ""
    read: tuple[str, ...] = ()
    bound: object = None

    @property
    def fields(self) -> int:
        """How many fields `layout` has."""
        struct = Struct("<" + self.layout)
        return len(struct.unpack(bytes(struct.size)))


def prefixed(size: int) -> tuple[str, ...]:
    """Reads `{v}`: bytes behind a little-endian length of `size` bytes."""
    length = " | ".join(f"d[o + {i}] << {8 * i}" if i else "d[o]" for i in range(size))
    return (f"n = o + {size} + ({length})", f"{{v}} = d[o + {size}:n]", "o = n")
