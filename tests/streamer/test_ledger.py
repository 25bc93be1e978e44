"""The ledger as a state machine: transactions go in, acknowledgements come in any order, crashes restart it from
its last released position. A release never passes a change that is not acknowledged and never moves back."""

from __future__ import annotations

from collections import Counter

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from contract.gtid import GtidSet
from streamer.ledger import Entry, Ledger

SOURCE = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


class End:
    def __init__(self, number: int) -> None:
        self.gtid = f"{SOURCE}:{number}"
        self.number = number


class Message:
    def topic(self) -> str:
        return "a topic"


def ledger(released: GtidSet | None = None, events: int = 0) -> Ledger:
    return Ledger(50, 10_000, released or GtidSet(), events)


class LedgerMachine(RuleBasedStateMachine):
    """Transaction n has `self.sizes[n]` rows in all; the log (the binlog) is the same after every restart."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = ledger()
        self.binlog: list[list[int]] = []  # transaction -> its batches' sizes
        self.at = (0, 0)  # next to take in: transaction, batch
        self.in_flight: list[tuple[Entry, int]] = []  # one element a record not yet acknowledged, with its transaction
        self.entries: list[tuple[int, Entry]] = []
        self.released = 0  # transactions
        self.acknowledged: Counter[int] = Counter()

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
            self.ledger.commit(End(transaction + 1), 0.0)
            self.at = (transaction + 1, 0)

    @precondition(lambda self: self.in_flight)
    @rule(data=st.data())
    def acknowledge_any(self, data: st.DataObject) -> None:
        which = data.draw(st.integers(0, len(self.in_flight) - 1))
        entry, transaction = self.in_flight.pop(which)
        entry.acknowledge(None, Message())
        self.acknowledged[transaction] += 1

    @rule()
    def acknowledge_all(self) -> None:
        while self.in_flight:
            entry, transaction = self.in_flight.pop()
            entry.acknowledge(None, Message())
            self.acknowledged[transaction] += 1

    @rule()
    def release(self) -> None:
        end = self.ledger.release()
        if end is None:
            return
        assert isinstance(end, End)
        assert end.number > self.released, "moved back"
        for transaction in range(end.number):
            assert self.acknowledged[transaction] >= sum(self.binlog[transaction]), "passed an unacknowledged change"
        self.released = end.number
        assert str(self.ledger.released) == f"{SOURCE}:1" + (f"-{end.number}" if end.number > 1 else "")
        assert self.ledger.events == sum(sum(batches) for batches in self.binlog[: end.number])

    @rule()
    def crash(self) -> None:
        self.ledger = ledger(self.ledger.released, self.ledger.events)
        self.in_flight.clear()
        self.at = (self.released, 0)
        for transaction in range(self.released, len(self.binlog)):
            self.acknowledged[transaction] = 0

    @invariant()
    def counts_what_waits(self) -> None:
        assert self.ledger.depth >= 0
        assert self.ledger.size >= 0
        assert self.ledger.depth >= len({id(entry) for entry, _ in self.in_flight})
        if self.ledger.head() is None:
            assert (self.ledger.depth, self.ledger.size) == (0, 0)

    @invariant()
    def goes_on_behind_the_last_whole_transaction(self) -> None:
        entered = self.ledger.entered()
        assert all(entered.contains(f"{SOURCE}:{number}") for number in range(1, self.at[0] + 1))
        assert not entered.contains(f"{SOURCE}:{self.at[0] + 1}")


TestLedgerMachine = LedgerMachine.TestCase
TestLedgerMachine.settings = settings(max_examples=100, stateful_step_count=50, deadline=None)


def test_everything_is_released_once_all_is_acknowledged() -> None:
    waiting = ledger()
    entries = [waiting.enter(2, 20, 0.0), waiting.enter(3, 30, 0.0)]
    waiting.commit(End(1), 0.0)
    waiting.commit(End(2), 0.0)  # filtered: no rows
    for entry in reversed(entries):
        for _ in range(entry.events):
            entry.acknowledge(None, Message())
    end = waiting.release()
    assert isinstance(end, End)
    assert end.number == 2
    assert (waiting.depth, waiting.size, waiting.events) == (0, 0, 5)


def test_a_huge_transaction_frees_its_room_while_it_is_read() -> None:
    waiting = ledger()
    for _ in range(10):
        entry = waiting.enter(40, 100, 0.0)
        for _ in range(40):
            entry.acknowledge(None, Message())
        assert waiting.release() is None, "its end was not read yet"
        assert not waiting.full
        assert waiting.events == 0, "rows count with their transaction"
    waiting.commit(End(1), 0.0)
    assert waiting.release() is not None
    assert waiting.events == 400


def test_a_record_given_up_is_kept_and_nothing_passes_it() -> None:
    waiting = ledger()
    entry = waiting.enter(1, 10, 0.0)
    waiting.commit(End(1), 0.0)
    entry.acknowledge("gone", Message())
    waiting.commit(End(2), 0.0)
    assert waiting.release() is None
    assert waiting.failure == ("a topic", "gone")


def test_a_flood_of_filtered_transactions_is_bounded_too() -> None:
    waiting = ledger()
    waiting.enter(1, 10, 0.0)
    waiting.commit(End(1), 0.0)
    number = 1
    while not waiting.full:
        number += 1
        waiting.commit(End(number), 0.0)
    assert number <= 52
