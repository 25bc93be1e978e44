"""What a binlog file in the archive holds: its whole events, and where the last of them begins.

In: a file of which any number of last bytes may be missing, torn or zero. Out: its `Extent`. Nothing behind the first
event that is not whole counts, so that a file cut by a kill or a power failure goes on where it is still right.
"""

from __future__ import annotations

import mmap
from pathlib import Path
from struct import Struct
from typing import NamedTuple
from zlib import crc32

from streamer.protocol.events import FORMAT_DESCRIPTION, HEADER
from streamer.protocol.packets import CHECKSUM, CRC32, RESIDUE

MAGIC = b"\xfebin"
FIRST = len(MAGIC)
HEAD = Struct("<IBIIIH")  # time stamp, type, server id, size, end position, flags
POSITION_AT = 13  # the end position's offset in an event
CREATED_AT = HEADER + 52  # of a format description: behind the binlog's version and the server's
LOW = 0xFFFFFFFF  # positions in headers have 32 bits
unpack_head = HEAD.unpack_from


class Extent(NamedTuple):
    """Byte positions: `length`, the end of the last whole event; `last`, its beginning."""

    length: int
    last: int


def extent(path: Path) -> Extent:
    """Of a file that may have been cut. Where events have no checksum the last one does not count, since its end may be
    zeros in place of what was lost, and `last` is the file's first: all of it is to be compared. Raises OSError."""
    length, last, checked = _walked(path)
    return Extent(length, last) if checked else Extent(last, min(last, FIRST))


def written(path: Path) -> int:
    """The end of the last whole event in a file that another thread appends to. Raises OSError."""
    return _walked(path)[0]


def _walked(path: Path) -> tuple[int, int, bool]:
    if path.stat().st_size < FIRST:
        return 0, 0, True
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        return _events(data) if data[:FIRST] == MAGIC else (0, 0, True)


def _events(data: mmap.mmap) -> tuple[int, int, bool]:
    """The end of the last whole event, its beginning, and whether events have checksums."""
    at, last, checked = FIRST, FIRST, False
    while at + HEADER <= len(data):
        _, kind, _, size, end, _ = unpack_head(data, at)
        behind = at + size
        if size < HEADER or behind > len(data) or (end and end != behind & LOW):
            break
        if kind == FORMAT_DESCRIPTION and size > HEADER + CHECKSUM:
            checked = data[behind - CHECKSUM - 1] == CRC32
        if checked and crc32(data[at:behind]) != RESIDUE:
            break
        at, last = behind, at
    return at, last, checked


def head_of(data: bytes) -> bytes:
    """The format description at the beginning of a binlog file; empty where it is not whole."""
    if len(data) < FIRST + HEADER:
        return b""
    size = unpack_head(data, FIRST)[3]
    return data[FIRST : FIRST + size] if len(data) >= FIRST + size else b""


def identity(description: bytes) -> bytes:
    """A format description without what a server changes when it sends it ahead of a file's middle: end position,
    flags, time of the server's start, checksum. What is left tells the second in which the file was begun."""
    return b"".join(
        (
            description[:POSITION_AT],
            description[HEADER:CREATED_AT],
            description[CREATED_AT + 4 : -CHECKSUM],
        )
    )
