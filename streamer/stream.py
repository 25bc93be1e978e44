"""The stream: one thread that reads, decodes, sends and serves acknowledgements.

socket -> decoder -> router/envelope -> ledger -> sink; the watcher takes its turn in between. While the ledger
is full nothing is read, so the socket and with it the server wait. A lost connection is opened again behind the
last whole transaction that entered the ledger; of one that was taken in halfway the rest is taken, so nothing
comes twice. A fatal error ends the reading; what was accepted before it is still delivered and checkpointed.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import structlog

from contract.gtid import GtidSet
from contract.schema import TableSchema
from streamer import schemas
from streamer.checkpoints.port import Checkpoints
from streamer.control.status import Status
from streamer.ddl.notes import DdlNotes
from streamer.delivery_errors import WrongServerError
from streamer.envelope import records_of
from streamer.errors import ConnectionLostError, HeadraceError
from streamer.ledger import Ledger
from streamer.patience import Patience
from streamer.protocol.model import Commit, Ddl, Item, RowsBatch
from streamer.protocol.packets import ServerAnswerError
from streamer.routes import Router
from streamer.sinks.port import Sink
from streamer.watcher import Watcher, given_up

log = structlog.get_logger("streamer")
ROOM_POLL_SECONDS = 0.05
DRAIN_POLL_SECONDS = 0.05
RECONNECT_FIRST_SECONDS = 0.5
RECONNECT_MAX_SECONDS = 15.0
# A connection that held this long was a good one: the next loss begins with the shortest wait again.
GOOD_SECONDS = 30.0


class Connection(Protocol):
    def chunks(self) -> Iterator[bytes]: ...
    def close(self) -> None: ...
    def answered(self, error: ServerAnswerError) -> HeadraceError: ...


class Decoder(Protocol):
    @property
    def file(self) -> str: ...
    @property
    def pos(self) -> int: ...
    @property
    def ignored(self) -> Mapping[str, int]: ...
    def feed(self, chunk: bytes) -> Iterator[Item]: ...


class Stream:
    """`connect(gtids)` opens a dump behind the set, and calls `begin_anew` where it is another server's;
    `decoder(behind)` makes a fresh decoder for it, of what comes behind that place; `source` names the server in logs.
    `router` is set before `run`."""

    def __init__(
        self,
        connect: Callable[[GtidSet], Connection],
        decoder: Callable[[tuple[str, int] | None], Decoder],
        ledger: Ledger,
        sink: Sink,
        checkpoints: Checkpoints,
        watcher: Watcher,
        status: Status,
        patience: Patience,
        ddl: DdlNotes,
        epoch: int,
        source: str,
    ) -> None:
        self._connect = connect
        self._new_decoder = decoder
        self._ledger = ledger
        self._sink = sink
        self._checkpoints = checkpoints
        self._watcher = watcher
        self._status = status
        self._patience = patience
        self.ddl = ddl
        self._epoch = epoch
        self._source = source
        self.router: Router
        self.decoder: Decoder | None = None
        self._ignored: Counter[str] = Counter()  # by the connections before this one
        self.connected = False
        self.reconnects = 0
        self.last: Commit | None = None  # the last transaction end that entered the ledger
        self._elder: Commit | None = None  # the last one of the server before this one
        self.read_at = 0.0  # Unix seconds: when bytes last came
        self.caught_up_at = 0.0  # Unix seconds: when the server last had nothing more for us
        self.transactions = 0
        self.bytes_sent = 0
        self._half: RowsBatch | None = None  # the last batch of a transaction that is taken in so far
        self._skip: RowsBatch | None = None  # the same, while it is being read again
        self._elsewhere: int | None = None  # records of it that were sent, where another server gives the rest
        self._reread = 0  # records of it that this connection gave again
        self._now = time.monotonic()  # when the chunk came that is being decoded

    def run(self) -> None:
        """Until a stop or a fatal error. Raises Stopping, HeadraceError."""
        failures = 0
        while True:
            began = time.monotonic()
            cause = "the server ended it"
            try:
                self._session()
            except HeadraceError as error:
                if not error.retryable:
                    raise
                self._status.note(error)
                cause = str(error)
            failures = 0 if time.monotonic() - began >= GOOD_SECONDS else failures + 1
            pause = min(RECONNECT_MAX_SECONDS, RECONNECT_FIRST_SECONDS * 2**failures) * random.uniform(0.5, 1)
            self._status.wait_for(self._source)
            log.warning("connection lost", source=self._source, error=cause, retry_in_seconds=round(pause, 1))
            self._rest(pause)

    def _session(self) -> None:
        """One connection, until it is lost."""
        self._patience.check()
        self._reread = 0
        connection = self._connect(self._ledger.entered())
        if self.decoder is not None:
            self._ignored.update(self.decoder.ignored)
        decoder = self.decoder = self._new_decoder(self._behind())
        self._skip = self._half
        try:
            self._read(connection, decoder)
        finally:
            self.connected = False
            connection.close()

    def _behind(self) -> tuple[str, int] | None:
        """The place that all is behind that is still to come; not known while an XA transaction is to be read again."""
        if self.last is None or self.last is self._elder:
            checkpoint = self._watcher.checkpoint
            return None if checkpoint.seen_set else (checkpoint.file, checkpoint.pos)
        return None if self.last.open_xa else (self.last.file, self.last.pos)

    def _read(self, connection: Connection, decoder: Decoder) -> None:
        for chunk in connection.chunks():
            if not self.connected:
                self._opened()
            self._now = time.monotonic()
            if chunk:
                self._decode(connection, decoder, chunk)
                self.read_at = time.time()
            else:
                self.caught_up_at = time.time()
            self._turn(0)
            self._patience.check()

    def _decode(self, connection: Connection, decoder: Decoder, chunk: bytes) -> None:
        rows, end = self._rows, self._end
        try:
            for item in decoder.feed(chunk):
                if type(item) is RowsBatch:
                    rows(item)
                elif type(item) is Commit:
                    end(item)
                elif type(item) is Ddl:
                    self._ddl(item)
        except ServerAnswerError as error:
            raise connection.answered(error) from None

    def _opened(self) -> None:
        self.connected = True
        if self._status.came_back(self._source):
            log.info("answers again", was_waiting_for=self._source)

    def _rows(self, batch: RowsBatch) -> None:
        if self._skip is not None and self._again(batch):
            return
        ledger = self._ledger
        if ledger.full:
            self._wait_for_room()
        route = self.router.route(batch, self._epoch)
        keys, values = route.envelope.records(batch)
        count = len(values)
        size = len(values[0]) if count == 1 else sum(map(len, values))
        entry = ledger.enter(count, size, self._now)
        try:
            self._sink.send(route.topic, keys, values, entry.acknowledge)
        except HeadraceError:
            entry.cut = True
            raise
        self.bytes_sent += size
        route.counts[batch.op] += count
        self._half = batch

    def _ddl(self, item: Ddl) -> None:
        if self._skip is not None and self._skip.gtid == item.gtid:
            return  # it was sent before the rows that follow it
        for topic, key, value, everywhere in self.ddl.records(item, self._epoch, self.router):
            if self._ledger.full:
                self._wait_for_room()
            count = self._partitions(topic) if everywhere else 1
            entry = self._ledger.note(count, count * len(value), self._now)
            try:
                if everywhere:
                    self._sink.send_everywhere(topic, value, count, entry.acknowledge)
                else:
                    self._sink.send(topic, [key], [value], entry.acknowledge)
            except HeadraceError:
                entry.cut = True
                raise

    def _partitions(self, topic: str) -> int:
        while not (count := self._sink.partitions(topic)):
            self._turn(ROOM_POLL_SECONDS)
            self._patience.check()
        return count

    def _end(self, commit: Commit) -> None:
        if self._skip is not None:
            self._resumed(commit)
        self._ledger.commit(commit, self._now)
        self.last = commit
        self.transactions += 1
        if self._half is None and self._ledger.full:  # nothing but filtered transactions
            self._wait_for_room()
        self._half = None

    def _again(self, batch: RowsBatch) -> bool:
        """Whether the batch was taken in before the connection was lost."""
        assert self._skip is not None
        again = batch.gtid == self._skip.gtid and batch.ordinal <= self._skip.ordinal
        if again and self._elsewhere is not None:
            self._reread += records_of(batch)
            if batch.ordinal == self._skip.ordinal:
                self._divided_alike()
        return again

    def _divided_alike(self) -> None:
        """Raises ConnectionLostError where another server divides the transaction's rows into other events."""
        sent, self._elsewhere = self._elsewhere, None
        if self._reread != sent:
            self._half = None
            cause = f"transaction {self._skip and self._skip.gtid} has other events here than on the server before"
            raise ConnectionLostError("going on in", self._source, cause, "It is sent again as a whole")

    def _resumed(self, end: Commit) -> None:
        assert self._skip is not None
        gtid = self._skip.gtid
        if self._elsewhere is not None and end.gtid == gtid:
            self._divided_alike()  # it ended before the event that was sent last
        elif self._elsewhere is not None:
            log.info("another order of transactions", first=end.gtid, sent_again_as_a_whole=gtid)
            self._elsewhere = None
        elif end.gtid != gtid:
            raise WrongServerError(
                "going on in",
                f"transaction {gtid}",
                f"the server sent a part of it before the connection was lost, and now sends {end.gtid} in its place",
                "The server lost committed transactions (a crash without sync_binlog=1, or another server behind the "
                "same address). Start a pipeline of a new name, with a new snapshot.",
            )
        self._skip = None

    def _turn(self, wait: float) -> None:
        self._sink.poll(wait)
        self._watcher.turn(time.monotonic())

    def _wait_for_room(self) -> None:
        while self._ledger.full:
            self._turn(ROOM_POLL_SECONDS)
            self._patience.check()

    @property
    def ignored(self) -> dict[str, int]:
        """Events that were passed by since the start, by their names: of unknown kinds, which say that they may be."""
        return dict(self._ignored + Counter(self.decoder.ignored if self.decoder else ()))

    @property
    def depth(self) -> int:
        """Events that wait for their release."""
        return self._ledger.depth

    @property
    def half(self) -> str:
        """The GTID of a transaction that is taken in so far; empty between transactions."""
        return self._half.gtid if self._half is not None else ""

    def begin_anew(self, epoch: int) -> None:
        """Between two connections, when all that was sent is durable: what comes now has other coordinates."""
        self._epoch = epoch
        self._elder = self.last
        self.router.begin_anew()
        if self._half is not None:
            self._elsewhere = self._ledger.open_events

    def empty(self) -> None:
        """Returns when all that was sent is acknowledged. Raises Stopping, DeliveryError, StuckError."""
        while self._ledger.depth:
            self._turn(ROOM_POLL_SECONDS)
            self._watcher.release()
            self._patience.check()

    def settle(self) -> None:
        """Returns when the last checkpoint offered is durable. Raises Stopping, DeliveryError."""
        while not self._checkpoints.settled():
            self._turn(ROOM_POLL_SECONDS)
            self._patience.check()

    def publish(self, schema: TableSchema, topic: str) -> None:
        """Returns when the schema is durable. Raises Stopping, DeliveryError, StuckError."""
        outcome: list[Any] = []
        self._sink.send(topic, [schemas.key(schema)], [schemas.value(schema)], lambda error, _: outcome.append(error))
        while not outcome:
            self._turn(ROOM_POLL_SECONDS)
            self._patience.check()
        if outcome[0] is not None:
            raise given_up(topic, outcome[0])

    def _rest(self, seconds: float) -> None:
        """Waits between two connections; acknowledgements go on."""
        until = time.monotonic() + seconds
        self.reconnects += 1
        while time.monotonic() < until:
            self._turn(ROOM_POLL_SECONDS)
            self._patience.check()

    def drain(self, seconds: float) -> bool:
        """Waits until all that can be acknowledged is, and its checkpoint durable. Returns whether it is; at once where
        that cannot be any more."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and self._ledger.failure is None and self._checkpoints.failure is None:
            self._watcher.release()
            if self._ledger.exhausted and self._checkpoints.settled():
                return True
            self._sink.flush(DRAIN_POLL_SECONDS)
        return False
