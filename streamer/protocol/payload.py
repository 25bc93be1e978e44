"""A TRANSACTION_PAYLOAD event: a whole transaction's events, compressed -> the events.

In: the event's body. Out: like Packets, (buffer, start, end, header), but the events have no packet and no
checksum; memory stays bounded by the largest event. Raises ValueError, IndexError or zstandard.ZstdError.

Source: MySQL's source documentation, `mysql::binlog::event::codecs::binary::Transaction_payload`.
"""

from __future__ import annotations

import io
from collections.abc import Generator, Iterator
from typing import BinaryIO, cast

import zstandard

from streamer.protocol.events import HEADER, PACKET, SIZE
from streamer.protocol.lengths import lenenc
from streamer.protocol.packets import Event, unpack_frame

END, COMPRESSION, UNCOMPRESSED_SIZE, PAYLOAD_SIZE = 0, 2, 3, 1
ZSTD, NONE = 0, 255
LARGEST_WINDOW = 1 << 27  # bytes: what the highest level takes, and the most that a replica of MySQL reads
BEFORE = bytes(PACKET)  # in the place of a packet's header
PIECE = 1 << 20


def payload(d: bytes, o: int, end: int) -> Iterator[Event]:
    fields, o = _fields(d, o)
    body = memoryview(d)[o:end]
    if len(body) != fields.get(PAYLOAD_SIZE, len(body)):
        raise ValueError("the compressed transaction has another size than it says")
    kind = fields.get(COMPRESSION, ZSTD)
    if kind not in (ZSTD, NONE):
        raise ValueError(f"the transaction is compressed in the unknown way {kind}")
    with _plain(body, kind) as stream:
        read = yield from _events(stream)
    if read != fields.get(UNCOMPRESSED_SIZE, read):
        raise ValueError("the compressed transaction ends early")


def _fields(d: bytes, o: int) -> tuple[dict[int, int], int]:
    fields: dict[int, int] = {}
    while True:
        kind, o = lenenc(d, o)
        if kind == END:
            return fields, o
        size, o = lenenc(d, o)
        fields[kind], _ = lenenc(d[o : o + size], 0)
        o += size


def _plain(body: memoryview, kind: int) -> BinaryIO:
    if kind == NONE:
        return io.BytesIO(body)
    reader = zstandard.ZstdDecompressor(max_window_size=LARGEST_WINDOW).stream_reader(body)
    return cast(BinaryIO, reader)


def _events(stream: BinaryIO) -> Generator[Event, None, int]:
    """Gives the events and returns how many bytes they had."""
    held, total, wanted = b"", 0, PIECE
    while piece := _read(stream, wanted):
        total += len(piece)
        held += piece
        at, wanted = 0, PIECE
        while len(held) - at >= HEADER:
            header = unpack_frame(BEFORE + held[at : at + HEADER])
            end = at + header[SIZE]
            if header[SIZE] < HEADER:
                raise ValueError(f"an event of {header[SIZE]} bytes inside a compressed transaction")
            if end > len(held):
                wanted = max(PIECE, end - len(held))
                break
            yield held, at + HEADER, end, header
            at = end
        held = held[at:]
    if held:
        raise ValueError("the compressed transaction ends inside an event")
    return total


def _read(stream: BinaryIO, size: int) -> bytes:
    """So many bytes, or what is left; in pieces, for a size that lies would take the memory for all of it."""
    pieces = []
    while size > 0 and (piece := stream.read(min(size, PIECE))):
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)
