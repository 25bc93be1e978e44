"""The statements that stand in MariaDB's binlog ahead of what is read: whether one of them defines a table anew.

No clock tells: a session sets its events' times as it likes, and a second holds many statements. So the binlog itself
is read, by a connection of its own, once for all tables: what was found is kept, and a further question goes on from
where the reading ended. A connection that is lost takes nothing of that back.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator

import structlog

from contract.gtid import GtidSet
from contract.pipeline import Source
from streamer.connection import BinlogConnection, Silence
from streamer.ddl.redefined import Statement, statement
from streamer.protocol import events as ev
from streamer.protocol import mariadb
from streamer.protocol.packets import Event, Packets, ServerAnswerError
from streamer.protocol.query import Meaning, meaning, query

log = structlog.get_logger("streamer")
NO_REPLICA = 0  # the server id of a reader that is none: it takes no other one's place
KEPT = 16 << 20  # bytes of statements, about; what comes behind them is read anew for each question
ENTRY = 300  # bytes of one, beside its text
TOLD_AFTER_SECONDS = 2.0
REMIND_SECONDS = 30.0


class Ahead:
    """It outlives an attempt: one that begins again at the checkpoint finds what those before it read. `meanwhile`:
    called between two pieces of the binlog, for what cannot wait; it may raise, and the next question goes on from
    there. `durable`: the transactions of the checkpoint, of which nobody asks any more. `reading_for`: the table that
    is asked about, empty while nothing is read."""

    def __init__(self, meanwhile: Callable[[], None] = lambda: None) -> None:
        self.meanwhile = meanwhile
        self.durable: Callable[[], GtidSet] | None = None  # none: what is asked moves on alone
        self.reading_for = ""
        self._silence = Silence()
        self._kept: deque[Statement] = deque()
        self._size = 0
        self._from: GtidSet | None = None  # the statements behind these transactions were read,
        self._to: GtidSet | None = None  # up to the end of these

    def statements(self, source: Source, behind: GtidSet, to: GtidSet, asked_for: str) -> Iterator[Statement]:
        """Those that stand behind the transactions of `behind` and not behind those of `to`. Raises HeadraceError where
        the binlog cannot be read."""
        for one in self._all(source, behind, to, asked_for):
            if to.contains(one.gtid) and not behind.contains(one.gtid):
                yield one

    def _all(self, source: Source, behind: GtidSet, to: GtidSet, asked_for: str) -> Iterator[Statement]:
        read = self._begun(behind)
        yield from tuple(self._kept)
        if read.issuperset(to):
            return
        self.reading_for = asked_for
        try:
            for one in self._further(source, read, to):
                if self._size < KEPT:
                    self._kept.append(one)
                    self._size += len(one.text) + ENTRY
                yield one
        finally:
            self.reading_for = ""

    def _begun(self, behind: GtidSet) -> GtidSet:
        """Up to where it was read; what nobody asks of any more is forgotten."""
        if self._from is None or self._to is None or not behind.issuperset(self._from):
            self._kept.clear()
            self._size = 0
            self._from, self._to = behind.copy(), behind.copy()
        elif not self._to.issuperset(behind):  # what lies between was not read here
            self._from, self._to = behind.copy(), self._to.union(behind)
        elif (done := self.durable() if self.durable else behind).issuperset(self._from):
            self._from = done.copy()
        while self._kept and self._from.contains(self._kept[0].gtid):
            self._size -= len(self._kept.popleft().text) + ENTRY
        return self._to

    def _further(self, source: Source, read: GtidSet, to: GtidSet) -> Iterator[Statement]:
        """`read` moves on with the whole transactions, for as long as there is room for their statements."""
        asked = source.model_copy(update={"server_id": NO_REPLICA, "statements": False})
        reader = BinlogConnection(asked, read.copy(), silence=self._silence)
        found, passed, progress = _Statements(), read, _Progress(self.reading_for)
        try:
            for chunk in reader.chunks():
                yield from found.feed(chunk)
                if passed is read and self._size >= KEPT:
                    passed = read.copy()
                passed.add_all(found.whole())
                if found.ended or passed.issuperset(to):
                    return
                progress.step(len(chunk))
                self.meanwhile()
        except ServerAnswerError as error:
            raise reader.answered(error) from None
        finally:
            reader.close()
            progress.end()


class _Statements:
    """Of a dump's bytes. `ended`: nothing more comes."""

    def __init__(self) -> None:
        self._packets = Packets()
        self._gtid, self._domain, self._alone, self._undone = "", b"", False, False
        self._whole: dict[bytes, str] = {}  # by domain the last transaction that has come to its end

    @property
    def ended(self) -> bool:
        return self._packets.ended

    def whole(self) -> Iterable[str]:
        """The last whole transaction of each domain since this was asked."""
        if self.ended:
            self._end()
        whole, self._whole = self._whole, {}
        return whole.values()

    def feed(self, chunk: bytes) -> Iterator[Statement]:
        """Those that may define a table."""
        for event in self._packets.feed(chunk):
            d, o, end, header = event
            kind = header[ev.TYPE]
            if kind == ev.MARIADB_GTID:
                self._end()
                self._gtid, flags = mariadb.gtid(d, o, header[ev.SERVER_ID])
                self._domain, self._alone = d[o + 8 : o + 12], flags & mariadb.STANDALONE != 0
                self._undone = mariadb.is_undone(d, o, end, flags)
            elif kind in (ev.XID, ev.XA_PREPARE):
                self._end()
            elif kind in (ev.QUERY, ev.QUERY_COMPRESSED):
                yield from self._query(event)

    def _query(self, event: Event) -> Iterator[Statement]:
        d, o, end, header = event
        read = query(d, o, end)
        if header[ev.TYPE] == ev.QUERY_COMPRESSED:
            read = read._replace(statement=mariadb.plain(read.statement, 0, len(read.statement)))
        means = meaning(read.statement, read.escapes)
        if means is Meaning.DDL and not self._undone:
            ended = header[ev.TIMESTAMP] + read.seconds
            yield statement(read.database, read.text(), ended, self._gtid, read.escapes)
        if self._alone or means in (Meaning.COMMIT, Meaning.ROLLBACK):
            self._end()

    def _end(self) -> None:
        if self._gtid:
            self._whole[self._domain] = self._gtid
            self._gtid = ""


class _Progress:
    """Tells of a reading that lasts."""

    def __init__(self, asked_for: str) -> None:
        self._asked_for = asked_for
        self._began = time.monotonic()
        self._due = self._began + TOLD_AFTER_SECONDS
        self._bytes = 0

    def step(self, size: int) -> None:
        self._bytes += size
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + REMIND_SECONDS
            log.info("reading the binlog ahead", for_the_definition_of=self._asked_for, **self._so_far())

    def end(self) -> None:
        if time.monotonic() - self._began >= TOLD_AFTER_SECONDS:
            log.info("read the binlog ahead", for_the_definition_of=self._asked_for, **self._so_far())

    def _so_far(self) -> dict[str, int]:
        return {"seconds": round(time.monotonic() - self._began), "megabytes": self._bytes >> 20}
