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
from functools import partial
from typing import Protocol

import structlog

from contract.gtid import GtidSet
from contract.sequence import file_number
from streamer.control.status import Status
from streamer.ddl.notes import DdlNotes
from streamer.ddl.records import Outgoing as Note
from streamer.delivery import Delivery
from streamer.errors import BegunAnewError, HeadraceError
from streamer.follow.swap import Swap
from streamer.goal import Goal, Reached
from streamer.halfway import Halfway
from streamer.places import Behind
from streamer.protocol import refusals
from streamer.protocol.model import Commit, Ddl, Item, RowsBatch
from streamer.protocol.packets import ServerAnswerError
from streamer.protocol.position import WRAP
from streamer.resting import Resting
from streamer.routes import Router
from streamer.seen import Seen
from streamer.watcher import Watcher

log = structlog.get_logger("streamer")
RECONNECT_FIRST_SECONDS = 0.5
RECONNECT_MAX_SECONDS = 15.0
# A connection that held this long was a good one: the next loss begins with the shortest wait again.
GOOD_SECONDS = 30.0
EPOCHS_IN_VAIN = 3  # one after the other, without a transaction in between


class Connection(Protocol):
    def chunks(self) -> Iterator[bytes]: ...
    def more(self) -> bool: ...
    def close(self) -> None: ...
    def answered(self, error: ServerAnswerError) -> HeadraceError: ...


class Decoder(Protocol):
    @property
    def file(self) -> str: ...
    @property
    def pos(self) -> int: ...
    @property
    def ignored(self) -> Mapping[str, int]: ...
    @property
    def between_transactions(self) -> bool: ...
    def follow(self, wanted: Callable[[str, str], bool]) -> None: ...
    def feed(self, chunk: bytes) -> Iterator[Item]: ...


class Stream:
    """`connect(gtids)` opens a dump behind the set, and calls `begin_anew` where it is another server's;
    `decoder(behind)` makes a fresh decoder for it, of what comes behind that place; `source` names the server in logs.
    `router` and `swap` are set before `run`; `resting` with each connection, where a server can be asked."""

    def __init__(
        self,
        connect: Callable[[GtidSet], Connection],
        decoder: Callable[[tuple[str, int] | None], Decoder],
        delivery: Delivery,
        watcher: Watcher,
        status: Status,
        ddl: DdlNotes,
        epoch: int,
        source: str,
    ) -> None:
        self._connect = connect
        self._new_decoder = decoder
        self.delivery = delivery
        self.halfway = Halfway(source)
        self._watcher = watcher
        self._status = status
        self.ddl = ddl
        ddl.joined = watcher.joined
        self._epoch = epoch
        self._source = source
        self.router: Router
        self.swap: Swap
        self.resting: Resting | None = None
        self.decoder: Decoder | None = None
        self._ignored: Counter[str] = Counter()  # by the connections before this one
        self.connected = False
        self.reconnects = 0
        self.last: Commit | None = None  # the last transaction end that entered the ledger
        self._elder: Commit | None = None  # the last one of the server before this one
        self.read_at = 0.0  # Unix seconds: when bytes last came
        self.caught_up_at = 0.0  # Unix seconds: when the server last had nothing more for us
        self.complete_at = 0.0  # and when all that it had was released, too
        self.transactions = 0
        self.seen: Seen | None = None  # delivered before the start, and read again
        self.goal: Goal | None = None  # of a oneshot run
        self.begun_anew = ""  # why what comes next takes another epoch
        self._begun = -1, 0  # transactions at the last time that the binlog was begun anew, and how often there
        self._place = Behind(None)  # of this connection

    def run(self) -> None:
        """Until a stop or a fatal error; or until the goal is reached, and all before it delivered and checkpointed.
        Raises Stopping, HeadraceError."""
        try:
            if self.goal is None or not self.goal.reached:
                self._sessions()
        except Reached:
            self.delivery.empty()
            self.delivery.settle()

    def _sessions(self) -> None:
        failures = 0
        while True:
            began = time.monotonic()
            cause = "the server ended it"
            try:
                self._session()
            except HeadraceError as error:
                if not error.retryable:
                    raise
                if isinstance(error, BegunAnewError):
                    self._begun_again(error)
                self._status.note(error)
                cause = str(error)
            failures = 0 if time.monotonic() - began >= GOOD_SECONDS else failures + 1
            pause = min(RECONNECT_MAX_SECONDS, RECONNECT_FIRST_SECONDS * 2**failures) * random.uniform(0.5, 1)
            self._status.wait_for(self._source)
            log.warning("connection lost", source=self._source, error=cause, retry_in_seconds=round(pause, 1))
            self.reconnects += 1
            self.delivery.rest(pause)

    def _begun_again(self, error: BegunAnewError) -> None:
        """What comes next takes another epoch; not for ever, where none of them has any transaction."""
        taken, times = self._begun
        self._begun = self.transactions, times + 1 if taken == self.transactions else 1
        if self._begun[1] > EPOCHS_IN_VAIN:
            raise refusals.never_behind(error)
        self.begun_anew = error.cause

    def _session(self) -> None:
        """One connection, until it is lost."""
        self.delivery.turn()
        connection = self._connect(self.delivery.ledger.entered())
        if self.decoder is not None:
            self._ignored.update(self.decoder.ignored)
        behind = self.behind()
        self._place = Behind(behind)
        decoder = self.decoder = self._new_decoder(behind)
        self.halfway.connected()
        try:
            self._read(connection, decoder)
        finally:
            self.connected = False
            connection.close()

    def behind(self) -> tuple[str, int] | None:
        """The place that all is behind that is still to come: from there on 32 bits tell positions of 64. A start that
        reads an open XA transaction again knows it from its checkpoint, or not; up to 4 GiB nothing depends on it."""
        if self.last is not None and self.last is not self._elder:
            return self.last.file, self.last.pos
        checkpoint = self._watcher.checkpoint
        if not checkpoint.seen_set:
            return checkpoint.file, checkpoint.pos
        if checkpoint.read_from is None and checkpoint.pos >= WRAP:
            raise refusals.unknown_place(checkpoint.file, checkpoint.pos)
        return checkpoint.read_from

    def _read(self, connection: Connection, decoder: Decoder) -> None:
        for chunk in connection.chunks():
            if not self.connected:
                self._opened()
            self.delivery.now = time.monotonic()
            if chunk:
                self._decode(connection, decoder, chunk)
                self.read_at = time.time()
            else:
                self.caught_up_at = time.time()
                if self.delivery.ledger.depth == 0:
                    self.complete_at = self.caught_up_at
                self._idle(decoder)
            self.delivery.turn()
            if not chunk or not connection.more():
                self.delivery.pause()
            if self.swap.due and self.halfway.batch is None and decoder.between_transactions:
                self.swap.between(decoder)

    def _idle(self, decoder: Decoder) -> None:
        """The server has nothing more for now."""
        if self.goal is not None and decoder.between_transactions and self.halfway.batch is None:
            self.goal.rested(decoder.file, decoder.pos)
        if self.resting is not None and decoder.between_transactions and self.halfway.batch is None:
            self.resting.look(self.delivery.now, (decoder.file, decoder.pos), self.delivery.ledger.entered)

    def _decode(self, connection: Connection, decoder: Decoder, chunk: bytes) -> None:
        rows = self._rows
        end = partial(self._end_and_swap, decoder) if self.swap.due else self._end
        if self.goal is not None:
            end = partial(self._end_at_goal, self.goal, end)
        items = decoder.feed(chunk)
        try:
            for item in items if self._place.holds else self._place.first(items):
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
        half = self.halfway
        if half.skips and half.again(batch):
            return
        if self.seen is not None and self.seen.has(batch.file_number, batch.tx_pos, batch.gtid):
            return
        route = self.router.route(batch, self._epoch)
        keys, values = route.envelope.records(batch)
        self.delivery.rows(route.topic, keys, values)
        route.counts[batch.op] += len(values)
        half.batch = batch

    def _ddl(self, item: Ddl) -> None:
        if self.halfway.told(item.gtid):
            return
        if self.seen is not None and self.seen.has(file_number(item.file), item.pos, item.gtid):
            return
        for note in self.ddl.records(item, self._epoch, self.router):
            self.delivery.note(*self._noted(note))
        self.halfway.note(item.gtid)

    def _noted(self, note: Note) -> Note:
        """As it is sent."""
        return note

    def _end(self, commit: Commit) -> None:
        half = self.halfway
        if half.skips:
            half.ended(commit)
        if self.seen is not None and self.seen.over(commit, self.delivery.ledger.entered):
            self.seen = None
        self.delivery.end(commit)
        self.last = commit
        self.transactions += 1
        if half.batch is None and self.delivery.ledger.full:  # nothing but filtered transactions
            self.delivery.wait_for_room()
        half.over()

    def _end_and_swap(self, decoder: Decoder, commit: Commit) -> None:
        """Where the source never rests, a chunk seldom ends with a transaction."""
        self._end(commit)
        self.swap.between(decoder)

    def _end_at_goal(self, goal: Goal, end: Callable[[Commit], None], commit: Commit) -> None:
        end(commit)
        goal.passed(commit)

    @property
    def ignored(self) -> dict[str, int]:
        """Events that were passed by since the start, by their names: of unknown kinds, which say that they may be."""
        return dict(self._ignored + Counter(self.decoder.ignored if self.decoder else ()))

    @property
    def put_aside(self) -> dict[str, int]:
        """Records that did not go to Kafka, by `db.table`: of none where the pipeline file does not ask for it."""
        return {}

    @property
    def bent(self) -> dict[str, int]:
        """Values for which the records' form has no room, by `db.table`."""
        return {}

    def begin_anew(self, epoch: int) -> None:
        """Between two connections, when all that was sent is durable: what comes now has other coordinates."""
        self.begun_anew = ""
        self._epoch = epoch
        self._elder = self.last
        if self.seen is not None:
            self.seen = self.seen.elsewhere()
        self.router.begin_anew()
        self.halfway.elsewhere(self.delivery.ledger.open_events)
