"""MySQL's length-encoded numbers and texts.

Raises ValueError or IndexError where the bytes end too early.
"""

from __future__ import annotations

from collections.abc import Iterator

WIDTHS = {0xFC: 2, 0xFD: 3, 0xFE: 8}


def lenenc(d: bytes, o: int) -> tuple[int, int]:
    """The number at `o`, and the offset behind it."""
    first = d[o]
    if first < 0xFB:
        return first, o + 1
    end = o + 1 + WIDTHS.get(first, len(d))
    if end > len(d):
        raise ValueError(f"no length-encoded number: {first:#x}")
    return int.from_bytes(d[o + 1 : end], "little"), end


def lenencs(d: bytes) -> Iterator[bytes]:
    """All texts of `d`, each behind its length."""
    o = 0
    while o < len(d):
        size, o = lenenc(d, o)
        if o + size > len(d):
            raise ValueError("a text longer than its event")
        yield d[o : o + size]
        o += size
