"""The event that begins a transaction: its GTID and commit time.

Source: MySQL's source documentation, `mysql::binlog::event::Gtid_event`; a tagged one (MySQL 8.3) is written by the
`mysql::serialization` library: each field behind its number, all numbers of variable length.
Raises ValueError, IndexError or struct.error for broken bytes.
"""

from __future__ import annotations

from struct import Struct

# flags, uuid, number, a type byte and two logical clocks that matter to replicas alone; then, of 7 bytes each,
# the commit time here and, where its highest bit is set, the one on the original server (microseconds).
unpack = Struct("<x16sq17xQ").unpack_from
MICROS = (1 << 55) - 1
HAS_ORIGINAL = 1 << 55
TIMES = 42  # offset of the commit times
UUID, NUMBER, TAG, TIME, ORIGINAL_TIME = 1, 2, 3, 6, 7  # fields of a tagged one


class Sources(dict[bytes, str]):
    """`uuid:` by its 16 bytes; a binlog has few."""

    def __missing__(self, raw: bytes) -> str:
        text = self[raw] = uuid_text(raw) + ":"
        return text


def uuid_text(raw: bytes) -> str:
    digits = raw.hex()
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


SOURCES = Sources()


def gtid(d: bytes, o: int, end: int) -> tuple[str, int]:
    """`uuid:n`, and when it was committed on its original server: microseconds, or 0 where an old server does
    not say."""
    if end - o < TIMES + 8:
        uuid, number = Struct("<x16sq").unpack_from(d, o)
        return f"{SOURCES[uuid]}{number}", 0
    uuid, number, micros = unpack(d, o)
    if micros & HAS_ORIGINAL:
        micros = int.from_bytes(d[o + TIMES + 7 : o + TIMES + 14], "little")
    return f"{SOURCES[uuid]}{number}", micros & MICROS


def tagged_gtid(d: bytes, o: int, end: int) -> tuple[str, int]:
    """`uuid:tag:n`, and its commit time as `gtid` gives it."""
    for _ in range(3):  # format version, size, last field that must be understood
        _, o = number(d, o)
    fields: dict[int, int] = {}
    uuid = tag = b""
    while o < end and ORIGINAL_TIME not in fields:
        field, o = number(d, o)
        if field == UUID:
            octets = []
            for _ in range(16):
                octet, o = number(d, o)
                octets.append(octet)
            uuid = bytes(octets)
        elif field == TAG:
            size, o = number(d, o)
            tag, o = d[o : o + size], o + size
        else:
            fields[field], o = number(d, o)
    micros = fields.get(ORIGINAL_TIME) or fields.get(TIME, 0)
    place = fields[NUMBER] >> 1  # the lowest bit is the sign
    return f"{SOURCES[uuid]}{tag.decode()}:{place}" if tag else f"{SOURCES[uuid]}{place}", micros


def number(d: bytes, o: int) -> tuple[int, int]:
    """A number of variable length, and the offset behind it: as many further bytes as its first one has ones at
    its low end."""
    first = d[o]
    more = (~first & first + 1).bit_length() - 1
    if more >= 8:
        return int.from_bytes(d[o + 1 : o + 9], "little"), o + 9
    return int.from_bytes(d[o : o + more + 1], "little") >> more + 1, o + more + 1
