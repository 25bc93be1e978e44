"""Rows events that wait in a temporary file for their transaction's end, undecoded, each with its place.

It may be cut back to a savepoint. What the file system refuses is told by OSError, of opening and writing alone.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from io import BufferedReader
from struct import Struct
from typing import NamedTuple

from streamer.protocol.packets import Header

BUFFER = 1 << 20
# Ordinal in the transaction; first byte and the byte behind, 64 bits; bytes of the statement and of the event; header.
RECORD = Struct("<IQQII8I")


class Spooled(NamedTuple):
    """`text`: the statement as a JSON string, empty where it is not told."""

    ordinal: int
    start: int
    pos: int
    header: Header
    text: bytes
    body: bytes


class Spool:
    """`size`: bytes of it so far. Nothing is kept in a buffer that a full disk could refuse later."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile(prefix="headrace-", buffering=0)  # noqa: SIM115  `close` closes it
        self.size = 0

    def add(self, event: Spooled) -> None:
        lengths = len(event.text), len(event.body)
        head = RECORD.pack(event.ordinal, event.start, event.pos, *lengths, *event.header)
        rest = memoryview(head + event.text + event.body)
        size = len(rest)
        while rest:
            rest = rest[self._file.write(rest) :]
        self.size += size

    def cut(self, size: int) -> None:
        """Back to what it was at that size."""
        self._file.seek(size)
        self.size = size

    def events(self) -> Iterator[Spooled]:
        """All of it, in order; nothing is added behind. Raises ValueError where the file lacks some."""
        self._file.seek(0)
        read, left = BufferedReader(self._file, BUFFER).read, self.size
        while left > 0:
            ordinal, start, pos, text, body, *header = RECORD.unpack(_exactly(read, RECORD.size))
            yield Spooled(ordinal, start, pos, tuple(header), _exactly(read, text), _exactly(read, body))
            left -= RECORD.size + text + body

    def close(self) -> None:
        self._file.close()


def _exactly(read: Callable[[int], bytes], size: int) -> bytes:
    found = read(size)
    if len(found) != size:
        raise ValueError("a temporary file of the streamer lost what was written to it")
    return found
