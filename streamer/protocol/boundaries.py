"""Where a transaction begins and how it ends: GTIDs, statements, XIDs, XA.

Rows are committed when they are read, but for those that `held` tells of; these are given with the end of their
transaction, or of another one, or not at all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from struct import Struct

from streamer.ddl.statement import change
from streamer.protocol import events as ev
from streamer.protocol import held, mariadb, refusals
from streamer.protocol.dispatch import BETWEEN, NEXT, OPEN
from streamer.protocol.held import Held, PreparedXa
from streamer.protocol.holding import HeldRows
from streamer.protocol.model import Commit, Ddl, Item, RowsBatch
from streamer.protocol.packets import Header
from streamer.protocol.query import Meaning, Query, filled, first_word, meaning, query
from streamer.protocol.status_variables import is_the_servers_own
from streamer.protocol.unclear import Definitions

IDS = 1_000  # of tables, kept from one transaction to the next
BEGINS = 1_000  # spellings of BEGIN, with the session's settings, kept
unpack_thread = Struct("<I").unpack_from
unpack_xid = Struct("<Q").unpack_from


class Transactions(HeldRows):
    """`last_event_ts`: when the last transaction began, seconds, Unix, by the source's clock."""

    def __init__(
        self, wanted: Callable[[str, str], bool], prepared: PreparedXa | None, definitions: Definitions | None
    ) -> None:
        super().__init__(wanted, prepared, definitions)
        self.last_event_ts = 0
        self._begins: set[bytes] = set()
        self._temporary = self._prepared.temporary
        self._undone = False  # whether the statement to come has changed nothing
        self._before = ""  # the transaction before this one in MariaDB's domain

    # Beginnings

    def _gtid_event(
        self, read: Callable[[bytes, int, int], tuple[str, int]], d: bytes, o: int, end: int, header: Header
    ) -> Iterable[Item]:
        return self._started(*read(d, o, end), header)

    def _started(self, gtid: str, micros: int, header: Header) -> Iterable[Item]:
        self._state = NEXT[self._state, "GTID"]
        self._position.move(header)
        if len(self._tables) >= IDS:  # of tables that were altered or are gone; each transaction tells its own anew
            self._tables.clear()
        self._gtid = gtid
        self._micros = micros or header[ev.TIMESTAMP] * 1_000_000
        self._tx_pos = self._position.start
        self._ordinal = self._given = 0
        self.last_event_ts = header[ev.TIMESTAMP]
        return ()

    def _mariadb_gtid(self, d: bytes, o: int, end: int, header: Header) -> Iterable[Item]:
        """It begins its transaction itself: no BEGIN follows."""
        text, flags = mariadb.gtid(d, o, header[ev.SERVER_ID])
        self._before = self._prepared.before(text[: text.index("-")], text)
        self._started(text, 0, header)
        self._undone = mariadb.is_undone(d, o, end, flags)
        if not flags & mariadb.STANDALONE:
            self._thread = 0
            self._state = NEXT[self._state, "BEGIN"]
            self._in_xa = flags & mariadb.PREPARED != 0
            if not self._holds:
                self._way(True, self._told)
        return ()

    # Statements

    def _query(self, d: bytes, o: int, end: int, header: Header, packed: bool = False) -> Iterable[Item]:
        # What follows thread and time is the same bytes for nearly every BEGIN.
        rest = d[o + 8 : end]
        if rest in self._begins:
            self._thread = unpack_thread(d, o)[0]
            self._state = NEXT[self._state, "BEGIN"]
            return ()
        read = query(d, o, end)
        self._thread = read.thread
        if packed:
            read = read._replace(statement=mariadb.plain(read.statement, 0, len(read.statement)))
        kind = meaning(read.statement, read.escapes)
        if kind is Meaning.BEGIN:
            if len(self._begins) >= BEGINS:
                self._begins.clear()
            self._begins.add(rest)
            self._state = NEXT[self._state, "BEGIN"]
            return ()
        of_a_thread = header[ev.FLAGS] & ev.OF_A_THREAD
        if kind is Meaning.DDL:
            if self._undone:
                return self._no_rows(header)
            if self._renamed(read) or (of_a_thread and self._of_a_temporary(read)):
                return self._ddl(read, header, temporary=True)
            self._defined_anew(read, header)
        if kind is Meaning.ROWS:
            if of_a_thread and self._temporary.takes(self._thread, read.database, read.text(), read.escapes):
                return self._no_rows(header)
            if self._empties(read):
                return self._ddl(read, header)
        return self._statement(kind, read, header)

    def _empties(self, read: Query) -> bool:
        """`DELETE FROM db.table` alone: MySQL 8.0.15 writes it of a MEMORY table, when that is first used
        behind the server's start. Later ones, and MariaDB, write TRUNCATE TABLE."""
        own = not self._server.mariadb and is_the_servers_own(read.status)
        return own and change(read.text(), "", read.escapes).kind == "truncate"

    def _statement(self, kind: Meaning, read: Query, header: Header) -> Iterable[Item]:
        statement = read.statement
        if kind is Meaning.COMMIT:
            return self._end(header, None)
        if kind is Meaning.ROLLBACK:
            return self._rolled_back(header)
        if kind is Meaning.SAVEPOINT:
            self._held.savepoint(statement, self._given)
            self._odd = True
            return ()
        if kind is Meaning.RELEASED:
            return ()
        if kind is Meaning.UNDONE:
            self._given = self._held.undo(statement, self._given, self._gtid)
            return ()
        if kind is Meaning.XA:
            return self._xa(statement, header)
        if kind is Meaning.ROWS:
            raise refusals.statement(read.database, first_word(read.statement))
        if kind is Meaning.HEARTBEAT:
            return self._no_rows(header)
        return self._ddl(read, header)

    def _no_rows(self, header: Header) -> Iterable[Item]:
        """Of a statement that changes no rows of interest."""
        return () if self._state == OPEN else self._end(header, None)

    def _ddl(self, read: Query, header: Header, temporary: bool = False) -> Iterable[Item]:
        ddl = Ddl(
            read.database, read.text(), self._gtid, self.file, self._tx_pos, self._micros, header[ev.SERVER_ID],
            self._thread, temporary, read.escapes, self._server,
        )  # fmt: skip
        if (table := filled(ddl.statement, ddl.db, ddl.escapes)) and self._is_ours(*table):
            raise refusals.statement(read.database, first_word(read.statement))
        # CREATE TABLE ... SELECT has its DDL inside the transaction of its rows.
        return (ddl,) if self._state == OPEN else (ddl, *self._end(header, None))

    def _of_a_temporary(self, read: Query) -> bool:
        exact = self._server.mariadb
        found = self._temporary.changed(self._thread, read.database, read.text(), exact=exact, escapes=read.escapes)
        self._odd = self._odd or bool(self._temporary.all())
        return found

    def _renamed(self, read: Query) -> bool:
        """MariaDB's RENAME TABLE of temporary tables has no mark."""
        renames = self._server.mariadb and first_word(read.statement) == "RENAME"
        return renames and self._temporary.renamed(self._thread, read.database, read.text(), read.escapes)

    def _is_ours(self, db: str, table: str) -> bool:
        """By the letters that were typed, or in lower case, as some servers compare names."""
        return self._wanted(db, table) or self._wanted(db.lower(), table.lower())

    @property
    def file(self) -> str:
        return self._position.file

    def _rolled_back(self, header: Header) -> Iterable[Item]:
        """What was held of it is given up; what was given already cannot be."""
        if self._given > len(self._held.batches):
            raise refusals.rollback(self._gtid)
        self._held.clear()
        return self._end(header, None)

    def _cut_off(self, by_a_crash: bool) -> None:
        """MariaDB leaves in its binlog what a crash cut off in the middle (MDEV-6608), and goes on in another file:
        rolled back by all who read it. Raises UnsupportedTransactionError where rows of it were given."""
        if not by_a_crash or self._given > len(self._held.batches):
            raise refusals.out_of_order("new binlog file", self._state)
        self._held.clear()
        self._in_xa = False
        self._way(False, False)
        self._state = BETWEEN

    # Ends

    def _xid(self, d: bytes, o: int, _end: int, header: Header) -> Iterable[Item]:
        return self._end(header, unpack_xid(d, o)[0])

    def _end(self, header: Header, xid: int | None) -> Iterable[Item]:
        self._state = NEXT[self._state, "end"]
        commit = self._commit(header, xid)
        return self._odd_end(commit) if self._odd else (commit,)

    def _commit(self, header: Header, xid: int | None) -> Commit:
        place = self._position
        place.move(header)
        return Commit(self._gtid, place.file, place.pos, self._tx_pos, xid, self._micros, header[ev.SERVER_ID])

    def _odd_end(self, commit: Commit) -> Iterable[Item]:
        """Of a transaction with rows that were held, or savepoints, or while an XA transaction is open or a temporary
        table is known."""
        commit.open_xa, commit.read_from = self._prepared.open, self._prepared.first
        commit.temporary = self._temporary.all()
        self._odd = bool(commit.open_xa or commit.temporary)
        return chain(self._let_go(), (commit,))

    # XA

    def _xa(self, statement: bytes, header: Header) -> Iterable[Item]:
        found = held.STATEMENT.match(statement[statement.upper().find(b"XA") :])
        verb = found[1].upper() if found else b""
        if found is None or verb not in (b"START", b"BEGIN", b"END", b"COMMIT", b"ROLLBACK"):
            raise refusals.xa()
        if verb in (b"START", b"BEGIN"):
            self._state = NEXT[self._state, "BEGIN"]
            self._in_xa = True
            self._way(True, self._told)
        elif verb != b"END":
            if self._state == OPEN:
                raise refusals.out_of_order("XA " + verb.decode(), self._state)
            return self._xa_ended(found[2], verb == b"COMMIT", header)
        return ()

    def _xa_prepare(self, d: bytes, o: int, end: int, header: Header) -> Iterable[Item]:
        """The end of its rows, and, with ONE PHASE, their commit."""
        xid, committed = held.xid_of(d[o:end], 0)
        self._in_xa = False
        self._way(False, self._told)
        if not committed:
            self._prepared.prepare(xid, self._held, self._gtid, self._before, (self.file, self._tx_pos))
            self._held, self._odd = Held(), True
        return self._end(header, None)

    def _xa_ended(self, xid: bytes, committed: bool, header: Header) -> Iterator[Item]:
        """Its rows are of the transaction that commits it."""
        self._position.move(header)
        if committed:
            for batch in self._prepared.rows(xid, self._gtid):
                self._restamp(batch, header)
                yield batch
        self._prepared.end(xid)  # when all its rows were taken
        yield from self._end(header, None)

    def _restamp(self, batch: RowsBatch, header: Header) -> None:
        place = self._position
        batch.gtid, batch.thread, batch.server_id = self._gtid, self._thread, header[ev.SERVER_ID]
        batch.ts_us, batch.ts_ms = self._micros, self._micros // 1000
        batch.file, batch.file_number, batch.pos, batch.tx_pos = place.file, place.number, place.start, self._tx_pos
