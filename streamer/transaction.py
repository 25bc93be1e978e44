"""The bytes of a binlog dump -> committed rows, DDL and transaction ends, in binlog order. Does no I/O.

`BinlogDecoder.feed(chunk)` gives `RowsBatch`, `Ddl` and `Commit` items; one decoder serves one connection. What
it cannot be certain of raises a DecodeError that names event, file and position, after every item before it has
been given; the decoder is of no use then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from struct import Struct
from struct import error as StructError  # noqa: N812
from zlib import error as ZlibError  # noqa: N812

from zstandard import ZstdError

from streamer.errors import CorruptEventError, DecodeError
from streamer.protocol import events as ev
from streamer.protocol import mariadb, refusals
from streamer.protocol.dispatch import BETWEEN, NEXT, OPEN, Handlers
from streamer.protocol.gtid_event import gtid, tagged_gtid
from streamer.protocol.images import check_images
from streamer.protocol.model import Commit, Ddl, Item, Op, RowsBatch, TableMap
from streamer.protocol.packets import HINT, Event, Header, Packets
from streamer.protocol.payload import payload
from streamer.protocol.position import Position
from streamer.protocol.query import HEARTBEAT, Meaning, meaning, query
from streamer.protocol.server import NEWEST, writer
from streamer.protocol.table_map import names, table_map

BROKEN = (ValueError, IndexError, KeyError, StructError, OverflowError, ZstdError, ZlibError)
SHAPES = 10_000  # table shapes kept compiled
NOTHING: Header = (0,) * 8
BEGINS = 1_000  # spellings of BEGIN, with the session's settings, kept
unpack_thread = Struct("<I").unpack_from
unpack_xid = Struct("<Q").unpack_from


class BinlogDecoder:
    """`wanted(db, table)`: whose rows are given; others are skipped undecoded but counted in the ordinals.
    `ignored`: events passed by, by name. `file`, `pos`: what has been read, heartbeats included."""

    def __init__(self, wanted: Callable[[str, str], bool]) -> None:
        self.ignored: Counter[str] = Counter()
        self.last_event_ts = 0  # seconds, Unix, by the source's clock
        self._wanted = wanted
        self._packets = Packets()
        self._position = Position()
        self._state = BETWEEN
        self._tables: dict[bytes, TableMap | None] = {}  # by the id that rows events use
        self._shapes: dict[bytes, TableMap | None] = {}  # by their TABLE_MAP's bytes
        self._begins: set[bytes] = set()
        self._server = NEWEST
        self._gtid, self._micros, self._thread, self._tx_pos = "", 0, 0, 0
        self._ordinal, self._given = 0, 0  # rows events of this transaction: all, and given
        self._handlers = self._table()

    @property
    def file(self) -> str:
        return self._position.file

    @property
    def pos(self) -> int:
        return self._position.pos

    @property
    def between_transactions(self) -> bool:
        return self._state == BETWEEN

    def feed(self, chunk: bytes) -> Iterator[Item]:
        """To be run to its end before the next chunk is fed. Raises DecodeError, ServerAnswerError."""
        handlers = self._handlers
        header: Header = NOTHING
        try:
            for d, start, end, header in self._packets.feed(chunk):
                if items := handlers[header[ev.TYPE]](d, start, end, header):
                    yield from items
        except DecodeError as error:
            error.object += f" ({self._place(header)})"
            raise
        except BROKEN as error:
            raise self._corrupt(self._place(header), error) from None

    def _place(self, header: Header) -> str:
        self._position.move(header)
        return f"{ev.name_of(header[ev.TYPE])}, {self.file}:{self._position.start}"

    def _corrupt(self, place: str, error: Exception) -> CorruptEventError:
        """Says nothing of the event's bytes: they may be a row's."""
        cause = str(error) if type(error) is ValueError else f"its bytes are not valid ({type(error).__name__})"
        return CorruptEventError("read", f"event ({place})", cause, HINT)

    def _table(self) -> Handlers:
        handlers = Handlers(self.ignored)
        handlers.update(dict.fromkeys(ev.NEUTRAL, self._neutral))
        handlers.update(
            {
                ev.GTID: partial(self._gtid_event, gtid),
                ev.GTID_TAGGED: partial(self._gtid_event, tagged_gtid),
                ev.MARIADB_GTID: self._mariadb_gtid,
                ev.QUERY: self._query,
                ev.QUERY_COMPRESSED: partial(self._query, packed=True),
                ev.XID: self._xid,
                ev.TABLE_MAP: self._table_map,
                ev.TRANSACTION_PAYLOAD: self._payload,
                ev.ROTATE: self._rotate,
                ev.FORMAT_DESCRIPTION: self._format,
                ev.HEARTBEAT: self._heartbeat,
                ev.HEARTBEAT_V2: self._heartbeat,
                ev.PARTIAL_UPDATE_ROWS: self._partial_rows,
            }
        )
        for op, kinds in OPERATIONS.items():
            handlers.update({kind: partial(self._rows, op, kind in NEWER) for kind in kinds})
        for op, kinds in COMPRESSED.items():
            handlers.update({kind: partial(self._rows, op, kind in NEWER, packed=True) for kind in kinds})
        return handlers

    def _neutral(self, _d: bytes, _o: int, _end: int, _header: Header) -> Iterable[Item]:
        return ()

    def _gtid_event(
        self, read: Callable[[bytes, int, int], tuple[str, int]], d: bytes, o: int, end: int, header: Header
    ) -> Iterable[Item]:
        return self._started(*read(d, o, end), header)

    def _started(self, gtid: str, micros: int, header: Header) -> Iterable[Item]:
        self._state = NEXT[self._state, "GTID"]
        self._position.move(header)
        self._gtid = gtid
        self._micros = micros or header[ev.TIMESTAMP] * 1_000_000
        self._tx_pos = self._position.start
        self._ordinal = self._given = 0
        self.last_event_ts = header[ev.TIMESTAMP]
        return ()

    def _mariadb_gtid(self, d: bytes, o: int, _end: int, header: Header) -> Iterable[Item]:
        """It begins its transaction itself: no BEGIN follows."""
        text, flags = mariadb.gtid(d, o, header[ev.SERVER_ID])
        if flags & mariadb.XA:
            raise refusals.xa()
        self._started(text, 0, header)
        if not flags & mariadb.STANDALONE:
            self._thread = 0
            self._state = NEXT[self._state, "BEGIN"]
        return ()

    def _query(self, d: bytes, o: int, end: int, header: Header, packed: bool = False) -> Iterable[Item]:
        # What follows thread and time is the same bytes for nearly every BEGIN.
        rest = d[o + 8 : end]
        if rest in self._begins:
            self._thread = unpack_thread(d, o)[0]
            self._state = NEXT[self._state, "BEGIN"]
            return ()
        self._thread, db, statement = query(d, o, end)
        if packed:
            statement = mariadb.plain(statement, 0, len(statement))
        kind = meaning(statement)
        if kind is Meaning.BEGIN:
            if len(self._begins) >= BEGINS:
                self._begins.clear()
            self._begins.add(rest)
            self._state = NEXT[self._state, "BEGIN"]
            return ()
        if kind is Meaning.COMMIT or (kind is Meaning.ROLLBACK and not self._given):
            return self._end(header, None)
        return self._statement(kind, db, statement, header)

    def _statement(self, kind: Meaning, db: bytes, statement: bytes, header: Header) -> Iterable[Item]:
        if kind is Meaning.XA:
            raise refusals.xa()
        if kind is Meaning.ROLLBACK or (kind is Meaning.UNDONE and self._given):
            raise refusals.rollback()
        if kind in (Meaning.SAVEPOINT, Meaning.UNDONE):
            return ()
        if kind is Meaning.ROWS:
            if not HEARTBEAT.search(statement):
                raise refusals.statement()
            return () if self._state == OPEN else self._end(header, None)
        ddl = Ddl(
            db.decode(errors="replace"), statement.decode(errors="replace"), self._gtid, self.file, self._tx_pos,
            self._micros // 1000,
        )  # fmt: skip
        # CREATE TABLE ... SELECT has its DDL inside the transaction of its rows.
        return (ddl,) if self._state == OPEN else (ddl, *self._end(header, None))

    def _xid(self, d: bytes, o: int, _end: int, header: Header) -> Iterable[Item]:
        return self._end(header, unpack_xid(d, o)[0])

    def _end(self, header: Header, xid: int | None) -> tuple[Commit]:
        self._state = NEXT[self._state, "end"]
        place = self._position
        place.move(header)
        server_id = header[ev.SERVER_ID]
        return (Commit(self._gtid, place.file, place.pos, self._tx_pos, xid, self._micros, server_id),)

    def _table_map(self, d: bytes, o: int, end: int, _header: Header) -> Iterable[Item]:
        shape = d[o + 8 : end]
        try:
            table = self._shapes[shape]
        except KeyError:
            table = self._shape(shape)
        self._tables[d[o : o + 6]] = table
        return ()

    def _shape(self, shape: bytes) -> TableMap | None:
        db, name, _ = names(shape, 0)
        if len(self._shapes) >= SHAPES:
            self._shapes.clear()
        table = self._shapes[shape] = table_map(shape, self._server) if self._wanted(db, name) else None
        return table

    def _rows(
        self, op: Op, newer: bool, d: bytes, o: int, end: int, header: Header, packed: bool = False
    ) -> Iterable[Item]:
        self._state = NEXT[self._state, "rows"]
        ordinal = self._ordinal
        self._ordinal += 1
        table = self._tables[d[o : o + 6]]
        if table is None:
            return ()
        o += 8 + (d[o + 8] | d[o + 9] << 8 if newer else 0)
        full = table.full_update if op == "u" else table.full
        if d[o : o + len(full)] != full:
            check_images(table, full, d[o : o + len(full)])
        o += len(full)
        if packed:
            d = mariadb.plain(d, o, end)
            o, end = 0, len(d)
        rows: list[bytes] = []
        keys: list[bytes] = []
        table.decode(d, o, end, rows.append, keys.append)
        if op == "u" and len(rows) % 2:
            raise ValueError("an update without its after image")
        self._given += 1
        place = self._position
        place.move(header)
        return (
            RowsBatch(
                op, table, rows, keys, self._micros, self._gtid, self._thread, header[ev.SERVER_ID], place.file,
                place.number, place.start, self._tx_pos, ordinal,
            ),
        )  # fmt: skip

    def _partial_rows(self, d: bytes, o: int, _end: int, _header: Header) -> Iterable[Item]:
        self._state = NEXT[self._state, "rows"]
        self._ordinal += 1
        if self._tables[d[o : o + 6]] is not None:
            raise refusals.event(ev.PARTIAL_UPDATE_ROWS)
        return ()

    def _payload(self, d: bytes, o: int, end: int, header: Header) -> Iterator[Item]:
        """A compressed transaction: its events, all at the place of the one that holds them."""
        self._position.move(header)
        event: Event
        for event in payload(d, o, end):
            yield from self._handlers[event[3][ev.TYPE]](*event)

    def _rotate(self, d: bytes, o: int, end: int, _header: Header) -> Iterable[Item]:
        self._position.rotated(d, o, end)
        return ()

    def _format(self, d: bytes, o: int, _end: int, _header: Header) -> Iterable[Item]:
        """A file begins; a transaction that the file before left open was never committed."""
        if self._state != BETWEEN:
            raise refusals.out_of_order("new binlog file", self._state)
        self._tables.clear()
        written_by = writer(d, o)
        if written_by != self._server:
            self._server = written_by
            self._shapes.clear()
        return ()

    def _heartbeat(self, d: bytes, o: int, end: int, header: Header) -> Iterable[Item]:
        if header[ev.TYPE] == ev.HEARTBEAT_V2:
            self._position.heartbeat(d, o, end)
        else:
            self._position.move(header)
        return ()


NEWER = (
    ev.WRITE_ROWS, ev.UPDATE_ROWS, ev.DELETE_ROWS, ev.WRITE_ROWS_COMPRESSED, ev.UPDATE_ROWS_COMPRESSED,
    ev.DELETE_ROWS_COMPRESSED,
)  # fmt: skip
COMPRESSED: dict[Op, tuple[int, ...]] = {
    "c": (ev.WRITE_ROWS_COMPRESSED_V1, ev.WRITE_ROWS_COMPRESSED),
    "u": (ev.UPDATE_ROWS_COMPRESSED_V1, ev.UPDATE_ROWS_COMPRESSED),
    "d": (ev.DELETE_ROWS_COMPRESSED_V1, ev.DELETE_ROWS_COMPRESSED),
}
OPERATIONS: dict[Op, tuple[int, ...]] = {
    "c": (ev.WRITE_ROWS_V1, ev.WRITE_ROWS),
    "u": (ev.UPDATE_ROWS_V1, ev.UPDATE_ROWS),
    "d": (ev.DELETE_ROWS_V1, ev.DELETE_ROWS),
}
