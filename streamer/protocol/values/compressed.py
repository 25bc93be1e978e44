"""MariaDB's COMPRESSED columns: what the server compressed to keep it.

Source: MariaDB's source documentation, sql/field_comp.cc. Raises ValueError or zlib.error for what is no such value.
"""

from __future__ import annotations

import zlib

ZLIB, PLAIN = 8, 0  # in the upper half of the first byte
BARE, LENGTH = 0x08, 0x07  # in the lower half: no zlib header; bytes of the length, which follows


def inflated(raw: bytes) -> bytes:
    """It grows to the length that it says, and no further."""
    if not raw:
        return raw
    way, head = divmod(raw[0], 16)
    if way == PLAIN:
        return raw[1:]
    if way != ZLIB:
        raise ValueError(f"a column compressed in the unknown way {way}")
    start = 1 + (head & LENGTH)
    length = int.from_bytes(raw[1:start], "big")
    reader = zlib.decompressobj(-zlib.MAX_WBITS if head & BARE else zlib.MAX_WBITS)
    body = reader.decompress(raw[start:], length + 1)
    if len(body) != length or not reader.eof:
        raise ValueError("a compressed column has another length than it says")
    return body
