"""The bytes of a binlog dump -> committed rows, DDL and transaction ends, in binlog order. Does no I/O.

`BinlogDecoder.feed(chunk)` gives `RowsBatch`, `Ddl` and `Commit` items; one decoder serves one connection. What
it cannot be certain of raises a DecodeError that names event, file and position, after every item before it has
been given; the decoder is of no use then.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import partial

from contract.gtid import GtidSet
from streamer.errors import CorruptEventError, DecodeError
from streamer.protocol import events as ev
from streamer.protocol import refusals
from streamer.protocol.dispatch import BETWEEN, Handlers
from streamer.protocol.filters import Filters
from streamer.protocol.gtid_event import tagged_gtid
from streamer.protocol.gtid_set import decode
from streamer.protocol.held import PreparedXa
from streamer.protocol.mariadb import gtid_list
from streamer.protocol.model import Item
from streamer.protocol.packets import BROKEN, HINT, Event, Header
from streamer.protocol.payload import payload
from streamer.protocol.server import started, writer
from streamer.protocol.unclear import Definitions
from streamer.protocol.usual import UsualTransactions


class BinlogDecoder(UsualTransactions):
    """`wanted(db, table)`: whose rows are given; others are skipped undecoded but counted in the ordinals.
    `prepared`: the XA transactions that the connection before this one left open. `statements`: whether rows carry
    the statement that made them, where the server sends it. `definitions`: what MariaDB's binlog does not tell.
    `behind`: the place (file, 64 bits) that all transactions to come are behind, where it is known. `filters`:
    what of the wanted tables is given. `taken`: the whole transactions that were given, by this decoder or before it,
    where a file of MySQL's that begins behind others is to be refused.
    `ignored`: events passed by, by name. `file`, `pos`: what has been read, heartbeats included."""

    def __init__(
        self, wanted: Callable[[str, str], bool], prepared: PreparedXa | None = None, statements: bool = False,
        definitions: Definitions | None = None, behind: tuple[str, int] | None = None, filters: Filters | None = None,
        taken: Callable[[], GtidSet] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(wanted, prepared, definitions)
        self._filters = filters or self._filters
        self._position.behind = behind
        self._taken = taken
        self.ignored: Counter[str] = Counter()
        self._handlers = self._table(statements)

    @property
    def pos(self) -> int:
        return self._position.pos

    @property
    def between_transactions(self) -> bool:
        return self._state == BETWEEN

    def follow(self, wanted: Callable[[str, str], bool]) -> None:
        """Between transactions: whose rows are given from now on."""
        self._wanted = wanted
        known = ((shape, table) for shape, table in self._shapes.items() if table is not None)
        self._shapes = {shape: table for shape, table in known if wanted(table.db, table.table)}
        self._tables.clear()

    def feed(self, chunk: bytes) -> Iterator[Item]:
        """To be run to its end before the next chunk is fed. Raises DecodeError, ServerAnswerError."""
        handlers = self._handlers
        try:
            for d, start, end, header in self._packets.feed(chunk):
                if items := handlers[header[ev.TYPE]](d, start, end, header):
                    yield from items
        except DecodeError as error:
            error.object += f" ({self._place()})"
            raise
        except BROKEN as error:
            raise self._corrupt(self._place(), error) from None

    def _place(self) -> str:
        header = self._packets.header
        self._position.move(header)
        return f"{ev.name_of(header[ev.TYPE])}, {self.file}:{self._position.start}"

    def _corrupt(self, place: str, error: Exception) -> CorruptEventError:
        """Says nothing of the event's bytes: they may be a row's."""
        cause = str(error) if type(error) is ValueError else f"its bytes are not valid ({type(error).__name__})"
        return CorruptEventError("read", f"event ({place})", cause, HINT)

    def _table(self, statements: bool) -> Handlers:
        handlers = Handlers(self.ignored)
        handlers.update(dict.fromkeys(ev.NEUTRAL, self._neutral))
        handlers.update(
            {
                ev.GTID: self._usual,
                ev.GTID_TAGGED: partial(self._gtid_event, tagged_gtid),
                ev.MARIADB_GTID: self._mariadb_gtid,
                ev.GTID_LIST: self._gtid_list,
                ev.PREVIOUS_GTIDS: self._previous_gtids,
                ev.START_ENCRYPTION: self._start_encryption,
                ev.QUERY: self._query,
                ev.QUERY_COMPRESSED: partial(self._query, packed=True),
                ev.XID: self._xid,
                ev.XA_PREPARE: self._xa_prepare,
                ev.TABLE_MAP: self._table_map,
                ev.TRANSACTION_PAYLOAD: self._payload,
                ev.ROTATE: self._rotate,
                ev.FORMAT_DESCRIPTION: self._format,
                ev.HEARTBEAT: self._heartbeat,
                ev.HEARTBEAT_V2: self._heartbeat,
                **self._ways[False, False],
            }
        )
        if statements:
            handlers.update(
                {ev.ROWS_QUERY: partial(self._rows_query, 1), ev.ANNOTATE_ROWS: partial(self._rows_query, 0)}
            )
        return handlers

    def _neutral(self, _d: bytes, _o: int, _end: int, _header: Header) -> Iterable[Item]:
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
            self._cut_off(started(d, o))
        self._tables.clear()
        if started(d, o):
            self._temporary.clear()
        written_by = writer(d, o)
        if written_by != self._server:
            self._server = written_by
            self._shapes.clear()
        self._position.sums = written_by.mariadb
        return ()

    def _gtid_list(self, d: bytes, o: int, end: int, header: Header) -> Iterable[Item]:
        if not header[ev.FLAGS] & ev.ARTIFICIAL:  # of a place that the server passes by
            self._prepared.refuse_gap(gtid_list(d, o, end), self.file)
        return ()

    def _previous_gtids(self, d: bytes, o: int, end: int, _header: Header) -> Iterable[Item]:
        """What stands in the files before this one. Where MySQL is reset, its dumps go on with another file."""
        if self._taken is not None and (missing := decode(d, o, end).subtract(self._taken())):
            raise refusals.begun_anew(f"{self.file} begins behind {missing}, which was not given")
        return ()

    def _start_encryption(self, _d: bytes, _o: int, _end: int, header: Header) -> Iterable[Item]:
        """What follows is encrypted in the server's file. A dump gives it in the clear, and says so by the flag."""
        if not header[ev.FLAGS] & ev.MAY_BE_IGNORED:
            raise refusals.event(ev.START_ENCRYPTION)
        return ()

    def _heartbeat(self, d: bytes, o: int, end: int, header: Header) -> Iterable[Item]:
        if header[ev.TYPE] == ev.HEARTBEAT_V2:
            self._position.heartbeat(d, o, end)
        else:
            self._position.short_heartbeat(header)
        return ()
