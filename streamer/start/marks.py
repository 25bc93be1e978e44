"""Where transactions begin in a server's binlog files, from the headers of its events alone.

In: a server and one of its files. Out: one `Mark` for each event that stands between transactions, in the binlog's
order, through all later files up to the end of the last. Raises the typed errors of `connection`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from struct import pack
from typing import Any, NamedTuple

import pymysql

from contract.gtid_places import name as place_name
from contract.pipeline import Source
from streamer.connection import CHUNK, connect
from streamer.connection_errors import dump_error, refused
from streamer.flavors import dump
from streamer.protocol import events as ev
from streamer.protocol import mariadb
from streamer.protocol.gtid_event import gtid, tagged_gtid
from streamer.protocol.packets import Header, Packets, ServerAnswerError
from streamer.protocol.position import FIRST, Position
from streamer.protocol.server import writer

NON_BLOCKING = 1  # flag: the dump ends at the end of the last file
NOBODY = 0  # server id: a dump that ends no other one
SETTINGS = (
    "SET @master_binlog_checksum = @@GLOBAL.binlog_checksum, @source_binlog_checksum = @@GLOBAL.binlog_checksum, "
    "@mariadb_slave_capability = 4"
)
BETWEEN = (
    ev.FORMAT_DESCRIPTION, ev.PREVIOUS_GTIDS, ev.GTID_LIST, ev.BINLOG_CHECKPOINT, ev.ROTATE, ev.STOP, ev.GTID,
    ev.GTID_TAGGED, ev.MARIADB_GTID, ev.ANONYMOUS_GTID,
)  # fmt: skip
READ_SECONDS = 60


class Mark(NamedTuple):
    """`start`: byte position of the event. `gtid`: of the transaction that begins here; empty where none does.
    `from_us`, `to_us`: its commit time in Unix microseconds lies between them; of other events, when it was
    written."""

    file: str
    start: int
    kind: int
    gtid: str
    from_us: int
    to_us: int

    @property
    def anonymous(self) -> bool:
        return self.kind == ev.ANONYMOUS_GTID

    def name(self, by_place: bool) -> str:
        """Of the transaction that begins here, as a stream by place or by GTID names it; empty where none does."""
        if not by_place:
            return self.gtid
        return place_name(self.file, self.start) if self.gtid or self.anonymous else ""


def marks(source: Source, file: str, pos: int = FIRST) -> Iterator[Mark]:
    """`pos`: where a transaction begins, or the last one ends, below 4 GiB."""
    packets, position = Packets(), Position()
    try:
        for chunk in _chunks(source, file, pos):
            for d, o, end, header in packets.feed(chunk):
                kind = header[ev.TYPE]
                if header[ev.FLAGS] & ev.ARTIFICIAL and kind == ev.ROTATE:
                    position.rotated(d, o, end)
                    continue
                position.move(header)
                if kind == ev.FORMAT_DESCRIPTION:
                    position.sums = writer(d, o).mariadb
                if kind in BETWEEN:
                    yield Mark(position.file, position.start, kind, *_transaction(kind, d, o, end, header))
            if packets.ended:
                return
    except ServerAnswerError as error:
        raise dump_error(source, error.code, error.message) from None


def _transaction(kind: int, d: bytes, o: int, end: int, header: Header) -> tuple[str, int, int]:
    text, micros = "", 0
    if kind == ev.GTID:
        text, micros = gtid(d, o, end)
    elif kind == ev.ANONYMOUS_GTID:
        micros = gtid(d, o, end)[1]
    elif kind == ev.GTID_TAGGED:
        text, micros = tagged_gtid(d, o, end)
    elif kind == ev.MARIADB_GTID:
        text = mariadb.gtid(d, o, header[ev.SERVER_ID])[0]
    if micros:
        return text, micros, micros
    second = header[ev.TIMESTAMP] * 1_000_000
    return text, second, second + 999_999


def _chunks(source: Source, file: str, pos: int) -> Iterator[bytes]:
    try:
        with closing(connect(source, read_timeout=READ_SECONDS)) as connection:
            with connection.cursor() as cursor:
                cursor.execute(SETTINGS)
            body = pack("<IHI", pos, NON_BLOCKING, NOBODY) + file.encode()
            dump.send(connection, dump.COM_BINLOG_DUMP, body)
            yield from _received(connection)
    except (pymysql.MySQLError, OSError) as error:
        raise refused(source, error) from None


def _received(connection: pymysql.Connection[Any]) -> Iterator[bytes]:
    sock = connection._sock  # type: ignore[attr-defined]
    try:
        while data := sock.recv(CHUNK):
            yield data
    finally:
        connection._force_close()  # type: ignore[attr-defined]
