"""Dumps recorded from real servers (of MySQL 9.7, where the name does not say another) and what they say, for tests
without a server. `recorded/*.sql` made them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from struct import pack
from zlib import crc32

from streamer.protocol.model import Ddl, Item, RowsBatch

FOLDER = Path(__file__).parent / "recorded"
DUMP = (FOLDER / "mixed.dump").read_bytes()
EXPECTED = (FOLDER / "mixed.expected").read_text().splitlines()
HEADER = 19


def described(items: Iterable[Item]) -> Iterator[str]:
    """A line an item, a line a row."""
    for item in items:
        gtid = item.gtid[37:]
        if isinstance(item, RowsBatch):
            for n, row in enumerate(item.rows):
                key = item.keys[n].decode() if item.keys else "-"
                yield f"{item.op} {gtid} {item.table.table} {item.ordinal} {key} {row.decode()}"
        elif isinstance(item, Ddl):
            yield f"ddl {gtid} {item.statement}"
        else:
            yield f"commit {gtid} {item.file}:{item.pos}"


def packets(dump: bytes = DUMP) -> list[bytes]:
    """The dump's packets, headers included."""
    found, at = [], 0
    while at < len(dump):
        end = at + 4 + int.from_bytes(dump[at : at + 3], "little")
        found.append(dump[at:end])
        at = end
    return found


def event(packet: bytes) -> bytes:
    """The packet's event without its checksum."""
    return packet[5:-4]


def packet(event: bytes) -> bytes:
    """A packet with the event and a right size and checksum."""
    whole = event[:9] + pack("<I", len(event) + 4) + event[13:]
    return pack("<I", len(whole) + 5)[:3] + b"\x01\x00" + whole + pack("<I", crc32(whole))
