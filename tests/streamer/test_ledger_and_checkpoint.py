"""Ledger, watcher and checkpoints together as a state machine: acknowledgements in any order, records that the sink
gives up, a place of the checkpoints that is away, and restarts at any moment from what is durable there.

What must hold: everything before a durable checkpoint was acknowledged; it never moves back, and counts right; a
restart reads on behind it; and once all is acknowledged it is at the end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from contract.checkpoint import Checkpoint
from contract.gtid import GtidSet
from streamer.checkpoints.documents import DocumentCheckpoints
from streamer.checkpoints.kafka import KafkaCheckpoints
from streamer.checkpoints.port import Checkpoints
from streamer.control.status import Status
from streamer.delivery_errors import AwayError, DeliveryError
from streamer.ledger import Entry, Ledger
from streamer.protocol.model import Commit
from streamer.watcher import Watcher
from tests.streamer.fakes import FILE, SOURCE, ListSink, Message, pipeline

START = Checkpoint(
    pipeline="sales",
    connector_id="headrace-sales",
    server_id=1,
    server_uuid=SOURCE,
    epoch=0,
    file=FILE,
    pos=4,
    gtid_set="",
    ts_ms=0,
    events=0,
    written_at=0,
)


class Place:
    """Where checkpoints are durable: as documents that can be away, or as a commit log that acknowledges late."""

    def __init__(self, kafka: bool) -> None:
        self.kafka = kafka
        self.kept: dict[str, str] = {}
        self.away = False
        self.under_way: list[tuple[bytes, Any]] = []
        self.sink = ListSink()
        self.sink.send = self.send  # type: ignore[method-assign]

    def opened(self) -> Checkpoints:
        self.under_way.clear()
        if self.kafka:
            return KafkaCheckpoints(pipeline(), self.sink)
        return DocumentCheckpoints("sales", "here", self, retry_seconds=0.0)

    def loaded(self) -> Checkpoint:
        return Checkpoint.read(self.kept["checkpoint"]) if self.kept else START

    def send(self, topic: str, keys: Sequence[bytes | None], values: Sequence[bytes], callback: Any) -> None:
        self.under_way.append((values[0], callback))

    def acknowledge(self) -> None:
        if self.under_way and not self.away:
            value, callback = self.under_way.pop(0)
            self.kept["checkpoint"] = value.decode()
            callback(None, Message("sales.commit-log"))

    def read(self) -> Mapping[str, str]:
        return self.kept

    def write(self, key: str, text: str) -> None:
        if self.away:
            raise AwayError("keeping", "here", "no answer", "It is tried again.")
        self.kept[key] = text

    def close(self) -> None: ...


class Machine(RuleBasedStateMachine):
    """Transaction n of `binlog` ends at position 100 * n; it is the same after every restart."""

    kafka = False

    def __init__(self) -> None:
        super().__init__()
        self.place = Place(self.kafka)
        self.binlog: list[list[int]] = []
        self.acknowledged: Counter[int] = Counter()
        self.durable = START
        self.start()

    def start(self) -> None:
        """From what is durable: a new ledger, a new watcher."""
        begin = self.place.loaded()
        self.ledger = Ledger(30, 10_000, GtidSet.parse(begin.gtid_set), begin.events)
        self.checkpoints = self.place.opened()
        status = Status("sales")
        self.watcher = Watcher(self.ledger, self.checkpoints, self.place.sink, status, begin, 300)
        self.now = 0.0
        self.in_flight: list[tuple[Entry, int]] = []
        first = (begin.pos - 4) // 100
        self.at = (first, 0)
        for transaction in range(first, len(self.binlog)):
            self.acknowledged[transaction] = 0

    @rule(batches=st.lists(st.integers(1, 6), max_size=4))
    def source_commits(self, batches: list[int]) -> None:
        self.binlog.append(batches)

    @precondition(lambda self: self.at[0] < len(self.binlog) and not self.ledger.full)
    @rule()
    def read_one(self) -> None:
        transaction, batch = self.at
        batches = self.binlog[transaction]
        if batch < len(batches):
            entry = self.ledger.enter(batches[batch], 10 * batches[batch], 0.0)
            self.in_flight += [(entry, transaction)] * batches[batch]
            self.at = (transaction, batch + 1)
        else:
            number = transaction + 1
            end = Commit(f"{SOURCE}:{number}", FILE, 4 + 100 * number, 100 * transaction, number, 10**6, 1)
            self.ledger.commit(end, 0.0)
            self.at = (number, 0)

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data())
    def acknowledge_any(self, data: st.DataObject) -> None:
        self.acknowledge(data.draw(st.integers(0, len(self.in_flight) - 1)))

    @rule()
    def acknowledge_all(self) -> None:
        while self.in_flight:
            self.acknowledge(-1)

    def acknowledge(self, which: int) -> None:
        entry, transaction = self.in_flight.pop(which)
        entry.acknowledge(None, Message("t"))
        self.acknowledged[transaction] += 1

    @rule()
    def turn(self) -> None:
        self.now += 1e6
        self.watcher.turn(self.now)

    @rule()
    def the_commit_log_answers(self) -> None:
        self.place.acknowledge()

    @rule(away=st.booleans())
    def the_place_goes_or_comes(self, away: bool) -> None:
        self.place.away = away

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data())
    def a_record_is_given_up(self, data: st.DataObject) -> None:
        """The stream ends by it, and a person starts it again."""
        entry, transaction = self.in_flight.pop(data.draw(st.integers(0, len(self.in_flight) - 1)))
        entry.acknowledge("refused", Message("t"))
        with pytest.raises(DeliveryError, match="refused"):
            self.turn()
        self.acknowledge_all()
        self.watcher.release()
        assert self.watcher.checkpoint.pos <= 4 + 100 * transaction, "passed what was given up"
        self.holds()
        self.start()

    @rule()
    def all_is_well(self) -> None:
        """Then what was read is durable, as far as it is whole, though nothing more comes."""
        self.place.away = False
        self.acknowledge_all()
        for _ in range(3):
            self.turn()
            self.place.acknowledge()
        self.holds()
        assert (self.durable.pos - 4) // 100 == self.at[0]

    @rule()
    def crash(self) -> None:
        self.start()

    @invariant()
    def holds(self) -> None:
        found = self.place.loaded()
        assert found.place >= self.durable.place, "moved back"
        self.durable = found
        whole = (found.pos - 4) // 100
        for transaction in range(whole):
            assert self.acknowledged[transaction] >= sum(self.binlog[transaction]), "a change was lost"
        assert found.events == sum(sum(batches) for batches in self.binlog[:whole])
        assert GtidSet.parse(found.gtid_set) == GtidSet.parse(f"{SOURCE}:1-{whole}" if whole else "")
        if (told := self.checkpoints.durable) is not None:
            assert told.place <= found.place, "told durable what is not"

    def teardown(self) -> None:
        """Whatever happened, it comes to the end."""
        while self.at[0] < len(self.binlog):
            if self.ledger.full:
                self.acknowledge_all()
                self.turn()
            else:
                self.read_one()
        self.all_is_well()
        assert self.durable.events == sum(map(sum, self.binlog))
        assert self.ledger.depth == self.ledger.size == 0


class KafkaMachine(Machine):
    kafka = True


SETTINGS = settings(max_examples=100, stateful_step_count=60, deadline=None)
TestCommitLog = KafkaMachine.TestCase
TestCommitLog.settings = SETTINGS
TestDocuments = Machine.TestCase
TestDocuments.settings = SETTINGS
