"""MariaDB's own events: the one that begins a transaction, the one that tells what is before a file, and compressed
bodies.

Source: MariaDB's documentation, "GTID_EVENT", "GTID_LIST_EVENT", "QUERY_COMPRESSED_EVENT" and
"Rows_event_v1/v2_compressed".
Raises ValueError, struct.error or zlib.error for broken bytes.
"""

from __future__ import annotations

import zlib
from struct import Struct

unpack_gtid = Struct("<QIB").unpack_from  # sequence, domain, flags
unpack_count = Struct("<I").unpack_from
iter_list = Struct("<IIQ").iter_unpack  # domain, server, sequence
COUNT = 0x0FFFFFFF  # the bits above it are flags
STANDALONE = 0x01  # one statement, with no COMMIT behind it
COMMIT_ID = 0x02  # eight bytes more, before the further flags
PREPARED = 0x40  # an XA transaction's rows, which its end comes behind
OF_XA = 0x40 | 0x80  # its id, instead
ALTER_BEGINS, ALTER_GIVEN_UP = 0x02, 0x08  # further flags, with binlog_alter_two_phase
COMPRESSED = 0x80  # in the first byte: the ways of compression follow, and how long the length is
WAY, LENGTH = 0x70, 0x07
ZLIB = 0


def gtid(d: bytes, o: int, server_id: int) -> tuple[str, int]:
    """`domain-server-sequence`, and the flags."""
    sequence, domain, flags = unpack_gtid(d, o)
    return f"{domain}-{server_id}-{sequence}", flags


def is_undone(d: bytes, o: int, end: int, flags: int) -> bool:
    """Whether the statement that follows has changed nothing: an ALTER TABLE that only begins, and comes again when it
    has ended, or one that was given up."""
    at = o + 13 + (8 if flags & COMMIT_ID else 0)
    return at < end and not flags & OF_XA and d[at] & (ALTER_BEGINS | ALTER_GIVEN_UP) != 0


def gtid_list(d: bytes, o: int, end: int) -> dict[tuple[str, str], int]:
    """The last number of each domain and server."""
    entries = d[o + 4 : o + 4 + 16 * (unpack_count(d, o)[0] & COUNT)]
    if o + 4 + len(entries) > end:
        raise ValueError("the list of GTIDs is cut off")
    return {(str(domain), str(server)): number for domain, server, number in iter_list(entries)}


def plain(d: bytes, o: int, end: int) -> bytes:
    """What was compressed. It grows to the length that stands before it, and no further."""
    head = d[o]
    if not head & COMPRESSED or head & WAY != ZLIB:
        raise ValueError(f"compressed in the unknown way {head:#x}")
    start = o + 1 + (head & LENGTH)
    length = int.from_bytes(d[o + 1 : start], "big")
    reader = zlib.decompressobj()
    body = reader.decompress(d[start:end], length + 1)
    if len(body) != length or not reader.eof:
        raise ValueError("what is compressed has another length than it says")
    return body
