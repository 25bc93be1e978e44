"""Events of more than one packet."""

from __future__ import annotations

import random
from struct import pack
from zlib import crc32

import pytest

from streamer.errors import CorruptEventError
from streamer.protocol.packets import FULL, Packets

KIND = 30  # WRITE_ROWS


def event(body: bytes) -> bytes:
    whole = pack("<IBIIIH", 1, KIND, 1, 19 + len(body) + 4, 0, 0) + body
    return whole + pack("<I", crc32(whole))


def packets(payload: bytes) -> bytes:
    """As the server cuts them: the last one is shorter than FULL, if need be empty."""
    parts = [payload[at : at + FULL] for at in range(0, len(payload), FULL)]
    if len(parts[-1]) == FULL:
        parts.append(b"")
    return b"".join(len(part).to_bytes(3, "little") + bytes((n % 256,)) + part for n, part in enumerate(parts))


def bodies(reading: Packets, dump: bytes, size: int) -> list[bytes]:
    found = []
    for at in range(0, len(dump), size):
        found += [d[start:end] for d, start, end, _ in reading.feed(dump[at : at + size])]
    return found


@pytest.mark.parametrize("size", [1 << 18, 7 << 20, 1 << 30])
def test_an_event_of_several_packets_stands_between_others(size: int) -> None:
    rng = random.Random(7)
    exact = 2 * FULL - 1 - 19 - 4  # ends with a full packet, behind which an empty one says so
    long = [rng.randbytes(5) * (exact // 5) + bytes(exact % 5), rng.randbytes(1 << 20) * 40]
    given = [b"before", long[0], b"between", long[1], b"behind"]
    dump = b"".join(packets(b"\x00" + event(body)) for body in given)
    reading = Packets()
    reading.tail = 4
    assert bodies(reading, dump, size) == given


def test_packets_without_end_are_not_kept() -> None:
    reading = Packets()
    full = FULL.to_bytes(3, "little") + b"\x00"
    begins = full + b"\x00" + pack("<IBIIIH", 1, KIND, 1, 20_000_000, 0, 0) + bytes(FULL - 20)
    list(reading.feed(begins))
    with pytest.raises(CorruptEventError, match="more bytes than the 20000000 of its event"):
        list(reading.feed(full + bytes(FULL)))


def test_a_full_packet_that_begins_no_event() -> None:
    with pytest.raises(CorruptEventError, match="more bytes than the 0 of its event"):
        list(Packets().feed(FULL.to_bytes(3, "little") + b"\x00\xff" + bytes(FULL - 1)))
