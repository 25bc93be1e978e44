"""Between the stream and the sink: what was read enters the ledger and goes out; every wait serves acknowledgements.

The sink's callbacks and the watcher have no thread of their own: whoever waits here gives them their turn, and hears
of a stop.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from contract.schema import TableSchema
from streamer import schemas
from streamer.beside import Result, beside
from streamer.checkpoints.port import Checkpoints
from streamer.delivery_errors import BrokerUnreachableError, TopicError
from streamer.errors import HeadraceError
from streamer.ledger import Ledger
from streamer.outgoing.record import Outgoing
from streamer.patience import Patience
from streamer.protocol.model import Commit
from streamer.sinks.port import Lingering, Partitioned, Sink
from streamer.watcher import Watcher

POLL_SECONDS = 0.05
PROBE_SECONDS = 0.5
COUNT_SECONDS = 60.0  # a topic may get more partitions
UNKNOWN_SECONDS = 30.0  # a topic that was made a moment ago is not known at once
UNKNOWN = "the broker answers, and knows no partition of it"
REMAKE = (
    "Was it deleted, or may the client not describe it? Mend that and start again: the topic is made where it is "
    "missing, and the stream goes on from the last checkpoint."
)


class Delivery:
    """`records`: sent since the start; `bytes`: of the rows' values. `now`: monotonic
    seconds, when that was read which is sent next."""

    def __init__(
        self, ledger: Ledger, sink: Sink, checkpoints: Checkpoints, watcher: Watcher, patience: Patience
    ) -> None:
        self.ledger = ledger
        self._sink = sink
        self._partitioned = sink if isinstance(sink, Partitioned) else None
        self._lingering = sink if isinstance(sink, Lingering) else None
        self._checkpoints = checkpoints
        self.watcher = watcher
        self._patience = patience
        self.records = 0
        self.bytes = 0
        self._counts: dict[str, tuple[int, float]] = {}  # partitions, and when they were counted
        self.now = time.monotonic()

    def rows(self, topic: str, keys: Sequence[bytes | None], values: Sequence[bytes]) -> None:
        """Sends the records of a rows event; waits while the ledger is full. Raises Stopping, DeliveryError, StuckError
        and as the sink."""
        ledger = self.ledger
        if ledger.full:
            self.wait_for_room()
        count = len(values)
        size = len(values[0]) if count == 1 else sum(map(len, values))
        entry = ledger.enter(count, size, self.now)
        self.records += count  # before one of them is sent: a part of them is no whole transaction
        try:
            self._sink.send(topic, keys, values, entry.acknowledge)
        except HeadraceError:
            entry.cut = True
            raise
        self.bytes += size

    def made(self, events: int, records: Sequence[Outgoing]) -> None:
        """Sends what `events` rows were made into, maybe nothing, or records that are none. Waits and raises as
        `rows`."""
        if self.ledger.full:
            self.wait_for_room()
        size = sum(record.size for record in records)
        entry = self.ledger.enter(events, size, self.now) if events else self.ledger.note(0, size, self.now)
        parts = self._partitioned
        entry.pending = sum(parts is not None or one.value is not None for one in records)  # else without tombstones
        self.records += events or len(records)
        try:
            for one in records:
                if parts:
                    parts.send_one(one.topic, one.key, one.value, entry.acknowledge, one.headers, one.partition)
                elif one.value is not None:
                    self._sink.send(one.topic, [one.key], [one.value], entry.acknowledge)
        except HeadraceError:
            entry.cut = True
            raise
        self.bytes += size

    def beat(self, record: Outgoing) -> None:
        """Sends a record that is of no transaction, between two."""
        self.made(0, [record])

    def note(self, topic: str, key: bytes | None, value: bytes, everywhere: bool) -> None:
        """Sends a record that is no row; `everywhere`: to each partition of the topic. Waits and raises as `rows`."""
        if self.ledger.full:
            self.wait_for_room()
        parts = self._partitioned if everywhere else None
        count = self._counted(topic, parts) if parts else 1
        entry = self.ledger.note(count, count * len(value), self.now)
        self.records += count
        try:
            if parts:
                parts.send_everywhere(topic, key, value, count, entry.acknowledge)
            else:
                self._sink.send(topic, [key], [value], entry.acknowledge)
        except HeadraceError:
            entry.cut = True
            raise

    def partitions(self, topic: str) -> int:
        """Of a sink that has some: 1 with others."""
        return self._counted(topic, self._partitioned) if self._partitioned else 1

    def _counted(self, topic: str, sink: Partitioned) -> int:
        """Asked of the broker now and then. Raises TopicError where it answers, and knows of none."""
        count, asked = self._counts.get(topic, (0, 0.0))
        if not count or self.now - asked >= COUNT_SECONDS:
            count = self._patience.until_answered(self._counting(topic, sink), f"the partitions of topic {topic}")
            self._counts[topic] = count, self.now
        return count

    def _counting(self, topic: str, sink: Partitioned) -> Callable[[], int]:
        """One attempt a call; raises BrokerUnreachableError where it is to be repeated."""
        away = time.monotonic()

        def ask() -> int:
            nonlocal away
            self.turn()
            if count := sink.partitions(topic):
                return count
            if not sink.probe(PROBE_SECONDS):
                away = time.monotonic()  # and is waited for
            elif time.monotonic() - away >= UNKNOWN_SECONDS:
                raise TopicError("counting the partitions of", f"topic {topic}", UNKNOWN, REMAKE)
            why = sink.last_error or UNKNOWN
            raise BrokerUnreachableError("counting the partitions of", f"topic {topic}", why, "It is asked again.")

        return ask

    def end(self, commit: Commit) -> None:
        """The transaction whose records were sent since the last one is whole."""
        self.ledger.commit(commit, self.now)

    def pause(self) -> None:
        """The source has nothing more for now. Raises as the sink."""
        if self._lingering is not None and self.ledger.depth:
            self._lingering.hasten()

    def turn(self, seconds: float = 0) -> None:
        """Serves acknowledgements; waits for the first one up to `seconds`. Raises Stopping, DeliveryError,
        StuckError."""
        self._sink.poll(seconds)
        self.watcher.turn(time.monotonic())
        self._patience.check()

    @property
    def holds_back(self) -> bool:
        """Whether a final error now takes whole transactions back with the one that it is in."""
        return False

    def _wait(self) -> None:
        self.turn(POLL_SECONDS)

    def wait_for_room(self) -> None:
        self._sink.flush(0)
        while self.ledger.full:
            self._wait()

    def rest(self, seconds: float) -> None:
        """Waits that long; raises as `turn`."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self._wait()

    def empty(self) -> None:
        """Returns when all that was sent is acknowledged. Raises as `turn`."""
        self._sink.flush(0)
        while self.ledger.depth:
            self._wait()
            self.watcher.release()

    def settle(self) -> None:
        """Returns when the last checkpoint offered is durable. Raises as `turn`."""
        while not self._checkpoints.settled():
            self._wait()

    def keep(self) -> None:
        """Returns when what the watcher's checkpoint tells is durable, before more is sent. Raises as `turn`."""
        self._checkpoints.offer(self.watcher.checkpoint)
        self.settle()

    def until_done(self, step: Callable[[], Result], what: str) -> Result:
        """What `step` gives, asked again while it raises a retryable error; acknowledgements are served meanwhile.
        Raises as `turn`, and every other error as it is."""

        def asked() -> Result:
            self.turn()
            return beside(step, self.turn)

        return self._patience.until_answered(asked, what)

    def publish(self, schema: TableSchema, topic: str) -> None:
        """Returns when the schema is durable. Raises as `turn`."""
        outcome: list[Any] = []
        self._sink.send(topic, [schemas.key(schema)], [schemas.value(schema)], lambda error, _: outcome.append(error))
        self._sink.flush(0)
        while not outcome:
            self._wait()
        if outcome[0] is not None:
            raise self.watcher.gave_up(topic, outcome[0])

    def drain(self, seconds: float) -> bool:
        """Waits until all that can be acknowledged is, and its checkpoint durable. Returns whether it is; at once where
        that cannot be any more."""
        until = time.monotonic() + seconds
        while time.monotonic() < until and self.ledger.failure is None and self._checkpoints.failure is None:
            self.watcher.release()
            if self.ledger.exhausted and self._checkpoints.settled():
                return True
            self._sink.flush(POLL_SECONDS)
        return False
