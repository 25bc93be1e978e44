"""A GTID set as bytes, as COM_BINLOG_DUMP_GTID takes it and the event PREVIOUS_GTIDS has it.

Source: MySQL's source documentation, sql/rpl_gtid_set.cc, `Gtid_set::encode`: a form for sets without tags, that every
server reads, and one with tags (MySQL 8.3).
"""

from __future__ import annotations

from struct import Struct
from uuid import UUID

from contract.gtid import GtidSet
from streamer.protocol.gtid_event import uuid_text

NUMBER = Struct("<Q").pack
READ = Struct("<Q").unpack_from
READ_SPAN = Struct("<QQ").unpack_from
WITH_TAGS = 1 | 1 << 56  # first and last byte of the count of sources


def encode(gtids: GtidSet) -> bytes:
    sources = {source: spans for source, spans in sorted(gtids.intervals.items()) if spans}
    tagged = any(":" in source for source in sources)
    parts = [NUMBER(WITH_TAGS | len(sources) << 8 if tagged else len(sources))]
    for source, spans in sources.items():
        uuid, _, tag = source.partition(":")
        parts.append(UUID(uuid).bytes)
        if tagged:
            parts.append(bytes((len(tag) << 1,)) + tag.encode())
        parts.append(NUMBER(len(spans)))
        parts += [NUMBER(first) + NUMBER(last + 1) for first, last in spans]
    return b"".join(parts)


def decode(d: bytes, o: int, end: int) -> GtidSet:
    """Raises ValueError, IndexError or struct.error for what is none, or is cut off."""
    gtids, data = GtidSet(), d[o:end]
    [count] = READ(data)
    tagged = count >> 56 != 0
    at = 8
    for _ in range(count >> 8 & (1 << 48) - 1 if tagged else count):
        source, at = uuid_text(data[at : at + 16]), at + 16
        if tagged and (size := data[at] >> 1):
            source += ":" + data[at + 1 : at + 1 + size].decode()
            at += size
        at += tagged
        [spans] = READ(data, at)
        at += 8
        for _ in range(spans):
            first, behind = READ_SPAN(data, at)
            if not 0 < first < behind:
                raise ValueError("an interval of GTIDs is empty")
            gtids.add_range(source, first, behind - 1)
            at += 16
    return gtids
