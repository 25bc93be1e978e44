"""Bytes of a binlog dump as received -> whole events.

In: chunks of any size. Out: (buffer, start, end, header): the event behind its 19-byte header and before its
checksum, and the header as FRAME unpacks it. A packet of 16 MB or more is put together from its parts.
Raises ServerAnswerError for the server's ERR packet, ChecksumError, CorruptEventError; the end of the dump
(EOF packet) sets `ended`.
"""

from __future__ import annotations

from collections.abc import Iterator
from struct import error as StructError  # noqa: N812
from zlib import crc32
from zlib import error as ZlibError  # noqa: N812

from zstandard import ZstdError

from streamer.errors import ChecksumError, CorruptEventError
from streamer.protocol.events import ARTIFICIAL, FLAGS, FORMAT_DESCRIPTION, FRAME, HEADER, PACKET, SIZE, TYPE

FULL = 0xFFFFFF  # a packet of this length goes on in the next one
ERR, EOF = 0xFF, 0xFE
WHOLE = FRAME.size  # bytes from a packet's start to its event's body
RESIDUE = 0x2144DF1C  # the CRC32 of any bytes followed by their own CRC32
CHECKSUM = 4
SMALLEST, LARGEST = HEADER + CHECKSUM, FULL - 1  # sizes of an event in one packet
CRC32 = 1  # the checksum algorithm's number in a format description
Header = tuple[int, ...]
Event = tuple[bytes, int, int, Header]
unpack_frame = FRAME.unpack_from
# What the reading of broken bytes raises, beside typed errors.
BROKEN = (ValueError, IndexError, KeyError, StructError, OverflowError, ZstdError, ZlibError)
HINT = "Check the network and the server's disk; read the place with mysqlbinlog --verify-binlog-checksum"


class ServerAnswerError(Exception):
    """The server ended the dump: MySQL's error number and text."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(code, message)
        self.code, self.message = code, message


class Packets:
    """`ended`: the server has said that nothing more comes. `tail`: the length of the checksum behind each event of
    this file. `header`: of the event that was given last; `next`: where in its buffer the packet behind it begins. Who
    reads further ones there sets both."""

    def __init__(self) -> None:
        self.ended = False
        self._parts: list[bytes] = []  # received, not yet given out
        self._held = 0
        self._needed = 0  # no event is whole before this many bytes are held
        self._large: list[bytes] = []  # the whole packets of an event that goes on in the next one
        self.tail = self.next = 0
        self.header: Header = (0,) * 8

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """To be run to its end before the next chunk is fed."""
        if not chunk:
            return
        self._parts.append(chunk)
        self._held += len(chunk)
        if self._held < self._needed:
            return
        buffer = chunk if len(self._parts) == 1 else b"".join(self._parts)
        at, size, tail, goes_on = 0, len(buffer), self.tail, bool(self._large)
        while True:
            if at + WHOLE <= size and not goes_on:
                header = unpack_frame(buffer, at)
                first, ok, _, kind, _, length, _, flags = header
                end = at + PACKET + length
                # The ordinary case, which is nearly every one: an event in one whole packet.
                if (
                    end <= size
                    and first & FULL == length + 1
                    and not ok
                    and SMALLEST <= length < LARGEST
                    and kind != FORMAT_DESCRIPTION
                    and not flags & ARTIFICIAL
                ):
                    if tail and crc32(buffer[at + PACKET : end]) != RESIDUE:
                        raise wrong_checksum()
                    self.header, self.next = header, end
                    yield buffer, at + WHOLE, end - tail, header
                    at = self.next
                    continue
            packet, at = self._packet(buffer, at)
            if packet is None:
                break
            goes_on = False
            if event := self._event(packet):
                self.header = event[3]
                yield event
            tail = self.tail
        rest = buffer[at:]
        self._parts, self._held = [rest] if rest else [], len(rest)

    def _packet(self, buffer: bytes, at: int) -> tuple[bytes | None, int]:
        """The payload of the packet (of all its parts) at `at`, None where it is not whole yet, and where the next one
        starts."""
        while True:
            length = int.from_bytes(buffer[at : at + 3], "little")
            whole = at + 4 + (length if len(buffer) - at >= 4 else 0)
            if len(buffer) < max(whole, at + 4):
                self._needed = max(whole, at + 4) - at
                return None, at
            part = buffer[at + 4 : whole]
            at = whole
            if length < FULL and not self._large:
                self._needed = 0
                return part, at
            self._large.append(part)
            self._bounded()
            if length < FULL:
                packet = b"".join(self._large)
                self._large.clear()
                self._needed = 0
                return packet, at

    def _bounded(self) -> None:
        """Raises CorruptEventError where the parts are more than their event says, which would be kept without end."""
        first = self._large[0]
        size = unpack_frame(bytes(4) + first[: FRAME.size - 4])[SIZE] if first[:1] == b"\x00" else 0
        if sum(map(len, self._large)) > size + 1:
            raise CorruptEventError("read", "packet", f"more bytes than the {size} of its event", HINT)

    def _event(self, packet: bytes) -> Event | None:
        if packet[:1] == b"\xff":
            raise ServerAnswerError(int.from_bytes(packet[1:3], "little"), packet[9:].decode(errors="replace"))
        if packet[:1] == b"\xfe" and len(packet) < 9:
            self.ended = True
            return None
        if packet[:1] != b"\x00" or len(packet) < HEADER + 1:
            raise CorruptEventError("read", "packet", f"{len(packet)} bytes that are no event", HINT)
        header = unpack_frame(b"\x00\x00\x00\x00" + packet[: FRAME.size - 4])
        if header[SIZE] != len(packet) - 1:
            cause = f"its header says {header[SIZE]} bytes, its packet has {len(packet) - 1}"
            raise CorruptEventError("read", "event", cause, HINT)
        tail = self._tail_of(packet, header)
        if tail > len(packet) - HEADER - 1:
            raise CorruptEventError("read", "event", f"{len(packet) - 1} bytes are too few", HINT)
        return packet, 1 + HEADER, len(packet) - tail, header

    def _tail_of(self, packet: bytes, header: Header) -> int:
        """The length of the event's checksum, which is checked."""
        right = crc32(packet[1:]) == RESIDUE
        if header[TYPE] == FORMAT_DESCRIPTION:  # always has room for a checksum; its last byte says if there is one
            self.tail = CHECKSUM if packet[-CHECKSUM - 1] == CRC32 else 0
            if self.tail and not right:
                raise wrong_checksum()
            return CHECKSUM
        if header[FLAGS] & ARTIFICIAL and not self.tail:  # comes before the format description that would tell
            return CHECKSUM if right else 0
        if self.tail and not right:
            raise wrong_checksum()
        return self.tail


def wrong_checksum() -> ChecksumError:
    return ChecksumError("read", "event", "its CRC32 does not match its bytes", HINT)
