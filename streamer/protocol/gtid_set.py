"""A GTID set as bytes, as COM_BINLOG_DUMP_GTID takes it.

Source: MySQL's source documentation, sql/rpl_gtid_set.cc, `Gtid_set::encode`: a form for sets without tags, that every
server reads, and one with tags (MySQL 8.3).
"""

from __future__ import annotations

from struct import Struct
from uuid import UUID

from contract.gtid import GtidSet

NUMBER = Struct("<Q").pack
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
