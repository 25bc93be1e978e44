"""Exactly-once delivery over a broker in memory that commits, refuses and gives up transactions as it likes."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from confluent_kafka import KafkaError

from contract.gtid import GtidSet
from streamer import exactly_once
from streamer import patience as patience_module
from streamer import stream as stream_module
from streamer.checkpoints.kafka import TransactionalCheckpoints
from streamer.control.status import Status
from streamer.ddl.notes import DdlNotes
from streamer.delivery_errors import DeliveryError, RecordTooLargeError, StuckError, TransactionLostError
from streamer.errors import HeadraceError
from streamer.exactly_once import ExactlyOnce, TransactionalWatcher
from streamer.follow.file import FileWatch
from streamer.follow.swap import Swap
from streamer.ledger import Ledger
from streamer.patience import Patience, Stopping
from streamer.protocol.held import PreparedXa
from streamer.protocol.model import Commit, OpenXa
from streamer.routes import Router
from streamer.schemas import Schemas
from streamer.seen import Seen
from streamer.stream import Stream
from tests.checkpoints import checkpoint
from tests.streamer.fakes import SOURCE, Binlog, ListSink, Message, pipeline, transaction
from tests.streamer.test_stream import lost, seqs


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "RECONNECT_FIRST_SECONDS", 0.001)


class Transactions(ListSink):
    """`committed`: what readers of committed records see. `answers`: what each commit says, the last one for ever."""

    def __init__(self, committed: list[Any], answers: Callable[[], Any] = lambda: True) -> None:
        super().__init__()
        self.committed = committed
        self.batches: list[int] = []
        self._answers = answers

    def commit(self, seconds: float) -> bool:
        self.flush(0)
        answer = self._answers()
        if isinstance(answer, Exception):
            raise answer
        if answer:
            self.batches.append(len(self.records))
            self.committed += self.records
            self.records = []
        return bool(answer)


def gone() -> TransactionLostError:
    return TransactionLostError("delivering to", "Kafka", "given up", "Again.")


class Attempt:
    """One attempt over what the ones before it committed."""

    def __init__(self, binlog: Binlog, sink: Transactions, stuck_after: float = 60, careful: bool = False) -> None:
        settings = pipeline()
        self.sink, self.stop, status = sink, threading.Event(), Status("sales")
        reader = ListSink()
        reader.records = sink.committed
        begin = next(reversed(reader.checkpoints()), None) or checkpoint()
        self.ledger = Ledger(1000, 10**6, GtidSet.parse(begin.gtid_set), begin.events)
        self.checkpoints = TransactionalCheckpoints(settings, sink)
        self.watcher = TransactionalWatcher(self.ledger, self.checkpoints, sink, status, begin, 60)
        patience = Patience(status, self.stop)
        self.delivery = ExactlyOnce(
            self.ledger, sink, self.checkpoints, self.watcher, patience, stuck_after, 0.0 if careful else 0.1  # type: ignore[arg-type]
        )  # fmt: skip
        notes = DdlNotes(settings)
        self.stream = Stream(
            binlog.connect, binlog.decoder, self.delivery, self.watcher, status, notes, begin.epoch, "MySQL"
        )
        publish = partial(self.delivery.publish, topic="sales.schemas")
        self.stream.seen = Seen(GtidSet.parse(begin.seen_set), begin.place[1:]) if begin.seen_set else None
        self.stream.router = Router(settings, Schemas(), lambda wanted: [], publish)
        file = FileWatch(settings, lambda found: None)
        self.stream.swap = Swap(
            file, self.delivery, self.watcher, PreparedXa(), lambda old, new: (), self.stream.router.follow
        )

    def until(self, number: int) -> bool:
        """Whether transaction `number` became durable."""

        def watch() -> None:
            until = time.monotonic() + 20
            while time.monotonic() < until and not (self.stop.is_set() or self.durable(number)):
                time.sleep(0.002)
            self.stop.set()

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            self.stream.run()
        except Stopping:
            self.delivery.drain(1)
        except TransactionLostError:
            assert not self.delivery.drain(1) or not self.sink.records
        finally:
            self.stop.set()
            thread.join()
        return self.durable(number)

    def durable(self, number: int) -> bool:
        return GtidSet.parse(self.watcher.checkpoint.gtid_set).contains(f"{SOURCE}:{number}")


def seen(committed: list[Any]) -> ListSink:
    sink = ListSink()
    sink.records = committed
    return sink


@pytest.mark.parametrize("seed", range(5))
def test_whatever_ends_transactions_readers_see_each_change_once_and_in_order(seed: int) -> None:
    chance = random.Random(seed)
    transactions = [transaction(n, [2, 1, 3] if n % 3 else []) for n in range(1, 40)]
    binlog = Binlog(transactions, breaks=[chance.randrange(1, 30) for _ in range(6)], lost=lost)
    committed: list[Any] = []

    def answer() -> Any:
        kind = chance.random()
        return gone() if kind < 0.15 else kind > 0.3

    attempts = 0
    while not Attempt(binlog, Transactions(committed, answer)).until(39):
        attempts += 1
        assert attempts < 200
    found = seqs(seen(committed).events())
    rows = [(e, r) for e, size in enumerate([2, 1, 3]) for r in range(size)]
    assert found == [(0, 1, 1000 * n, e, r) for n in range(1, 40) if n % 3 for e, r in rows]
    checkpoints = seen(committed).checkpoints()
    assert [c.place for c in checkpoints] == sorted(c.place for c in checkpoints)
    assert (checkpoints[-1].gtid_set, checkpoints[-1].events) == (f"{SOURCE}:1-39", len(found))


def test_each_kafka_transaction_ends_with_the_checkpoint_of_what_it_holds() -> None:
    committed: list[Any] = []
    sink = Transactions(committed)
    assert Attempt(Binlog([transaction(n, [3]) for n in range(1, 30)]), sink).until(29)
    at = 0
    for size in sink.batches:
        batch, at = seen(committed[at : at + size]), at + size
        assert [topic for topic, _, _ in batch.records].count("sales.commit-log") == 1
        held = GtidSet.parse(batch.checkpoints()[0].gtid_set)
        last = max((int(event["source"]["gtid"].split(":")[1]) for event in batch.events()), default=0)
        assert not held.contains(f"{SOURCE}:{last + 1}")
        assert not last or held.contains(f"{SOURCE}:{last}")


def test_a_transaction_that_is_sent_in_part_is_not_visible() -> None:
    committed: list[Any] = []
    halves = transaction(2, [500, 500])
    binlog = Binlog([transaction(1, [1]), halves[:-1]])
    attempt = Attempt(binlog, Transactions(committed))
    assert attempt.until(1)
    assert [event["source"]["gtid"] for event in seen(committed).events()] == [f"{SOURCE}:1"]


def test_what_is_read_again_for_an_open_xa_transaction_is_not_sent_again() -> None:
    opened = (OpenXa(f"{SOURCE}:2", ""), OpenXa(f"{SOURCE}:3", ""))  # of MariaDB a start reads all behind the prepare
    binlog = [transaction(n, [] if n == 2 else [2]) for n in (1, 2, 3, 4, 5)]
    for one in binlog[1:4]:
        assert isinstance(one[-1], Commit)
        one[-1].open_xa = opened
    committed: list[Any] = []
    assert Attempt(Binlog(binlog[:4]), Transactions(committed)).until(4)
    last = seen(committed).checkpoints()[-1]
    assert (last.gtid_set, last.seen_set) == (f"{SOURCE}:1:4", f"{SOURCE}:1-4")
    assert Attempt(Binlog(binlog), Transactions(committed)).until(5)
    assert seqs(seen(committed).events()) == [(0, 1, 1000 * n, 0, r) for n in (1, 3, 4, 5) for r in (0, 1)]


def test_a_stop_in_the_middle_of_a_commit_waits_for_it_and_sends_no_second_checkpoint() -> None:
    committed: list[Any] = []
    answers = iter([False, False, True])
    attempt = Attempt(Binlog([transaction(1, [2])]), Transactions(committed, lambda: next(answers)))
    attempt.stop.set()
    attempt.delivery.rows("sales.shop.t", [b"{}"], [b"{}"])
    attempt.delivery.end(transaction(1, [2])[-1])  # type: ignore[arg-type]
    with pytest.raises(Stopping):
        attempt.delivery.commit()
    assert not committed
    assert attempt.delivery.drain(5)
    assert [topic for topic, _, _ in committed] == ["sales.shop.t", "sales.commit-log"]


def test_a_refused_record_is_final_and_what_shares_its_transaction_is_not() -> None:
    attempt = Attempt(Binlog([]), Transactions([], gone))
    entry = attempt.ledger.enter(1, 1, 0.0)
    entry.acknowledge(KafkaError(KafkaError._PURGE_QUEUE), Message("a topic"))
    with pytest.raises(TransactionLostError):
        attempt.watcher.turn(time.monotonic() + 1)
    attempt = Attempt(Binlog([]), Transactions([], gone))
    attempt.ledger.enter(1, 1, 0.0).acknowledge(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE), Message("a topic"))
    attempt.delivery.end(transaction(1, [])[-1])  # type: ignore[arg-type]
    with pytest.raises(DeliveryError, match="topic a topic"):
        attempt.delivery.commit()


class Busy(Binlog):
    """One that never rests, so that Kafka transactions end by time and size alone."""

    def more(self) -> bool:
        return True


def of_rows(attempt: Attempt, number: int, at: float, age: float = 0.0) -> None:
    """A transaction of one row, read at that moment, when it was committed so many seconds ago."""
    attempt.delivery.now = at
    attempt.delivery.rows("sales.shop.t", [b"{}"], [b"{}"])
    made = transaction(number, [])[-1]
    assert isinstance(made, Commit)
    made.ts_us = int((time.time() - age) * 1_000_000)
    attempt.delivery.end(made)


@pytest.mark.parametrize(("age", "seconds"), [(-60, 0.1), (0, 0.1), (1, 0.1), (1.5, 0.5), (2, 1.0), (3600, 1.0)])
def test_a_stream_that_is_behind_commits_less_often(age: float, seconds: float) -> None:
    sink = Transactions([])
    attempt = Attempt(Binlog([]), sink)
    began = attempt.delivery.now
    for n in range(1, 310):
        of_rows(attempt, n, began + n / 100, age)
    sizes = [size - 1 for size in sink.batches]  # without the checkpoint
    assert all(seconds * 100 - 2 <= size <= seconds * 100 + 3 for size in sizes), sizes
    attempt.delivery.pause()
    assert sum(sink.batches) - len(sink.batches) == 309, "at once where the source rests"


def test_a_kafka_transaction_holds_no_more_transactions_than_a_careful_attempt_commits(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exactly_once, "BATCH_TRANSACTIONS", 5)
    sink = Transactions([])
    attempt = Attempt(Binlog([]), sink)
    for n in range(1, 24):
        of_rows(attempt, n, attempt.delivery.now)
    assert sink.batches == [6, 6, 6, 6]


def ends(attempt: Attempt) -> None:
    with pytest.raises(RecordTooLargeError):
        attempt.stream.run()
    attempt.delivery.drain(1)


def test_a_record_that_is_refused_in_the_middle_of_an_event_leaves_none_before_it() -> None:
    class Refusing(Transactions):
        def send(self, topic: str, keys: Sequence[bytes | None], values: Sequence[bytes], callback: Any) -> None:
            super().send(topic, keys[:2], values[:2], callback)
            if len(values) == 3:
                raise RecordTooLargeError("sending", "a topic", "too large", "Raise it.")

    committed: list[Any] = []
    binlog = [transaction(1, [1]), transaction(2, [3])]
    ends(Attempt(Busy(binlog), Refusing(committed)))
    assert Attempt(Busy(binlog), Transactions(committed)).until(2)
    assert seqs(seen(committed).events()) == [(0, 1, 1000, 0, 0), *((0, 1, 2000, 0, r) for r in range(3))]


def test_whole_transactions_before_a_final_error_are_brought_by_an_attempt_that_commits_each() -> None:
    """Pitfall: what was accepted before a fatal error is still delivered and checkpointed."""
    committed: list[Any] = []
    binlog = [*(transaction(n, [1]) for n in range(1, 30)), transaction(30, [1, 1])[:-1]]
    error = RecordTooLargeError("decoding", "an event", "odd", "Look.")
    first_time = Attempt(Busy(binlog, error=error), Transactions(committed))
    with pytest.raises(RecordTooLargeError):
        first_time.stream.run()
    assert first_time.delivery.holds_back
    assert not first_time.delivery.drain(1)
    second = Attempt(Busy(binlog, error=error), Transactions(committed), careful=True)
    ends(second)
    assert not second.delivery.holds_back
    assert [event["source"]["seq"][2] for event in seen(committed).events()] == [1000 * n for n in range(1, 30)]
    assert seen(committed).checkpoints()[-1].gtid_set == f"{SOURCE}:1-29"


def test_a_checkpoint_that_the_broker_refuses_is_final() -> None:
    attempt = Attempt(Binlog([]), Transactions([], gone))
    attempt.delivery.end(transaction(1, [])[-1])  # type: ignore[arg-type]
    attempt.checkpoints._acknowledge(KafkaError(KafkaError.MSG_SIZE_TOO_LARGE), None)
    with pytest.raises(DeliveryError, match="commit log"):
        attempt.delivery.commit()


def test_a_commit_that_never_comes_although_the_broker_answers_is_an_error() -> None:
    attempt = Attempt(Binlog([transaction(1, [1])]), Transactions([], lambda: False), stuck_after=0.2)
    with pytest.raises(StuckError, match="has not ended"):
        attempt.stream.run()


def test_another_server_in_the_middle_of_a_transaction_begins_anew() -> None:
    attempt = Attempt(Binlog([]), Transactions([]))
    attempt.delivery.empty()
    attempt.delivery.rows("sales.shop.t", [b"{}"], [b"{}"])
    with pytest.raises(TransactionLostError):
        attempt.delivery.empty()


class AwayForNowError(HeadraceError):
    kind = "away"
    retryable = True


def waiting(attempt: Attempt, times: int) -> Callable[[], str]:
    left = [times]

    def step() -> str:
        left[0] -= 1
        if left[0] >= 0:
            raise AwayForNowError("putting aside into", "a store", "it does not answer", "Again.")
        return "done"

    return step


def test_a_wait_between_transactions_has_no_end_and_leaves_none_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience_module, "RETRY_SECONDS", 0.001)
    committed: list[Any] = []
    attempt = Attempt(Binlog([transaction(1, [2])]), Transactions(committed))
    attempt.delivery._open_seconds = 0
    for item in transaction(1, [2]):
        attempt.stream._rows(item) if not isinstance(item, Commit) else attempt.delivery.end(item)  # type: ignore[arg-type]
    assert attempt.delivery.until_done(waiting(attempt, 20), "a store") == "done"
    assert len(seen(committed).events()) == 2, "visible while the next one waits"


def test_a_wait_in_the_middle_of_a_transaction_ends_before_the_broker_gives_it_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patience_module, "RETRY_SECONDS", 0.01)
    attempt = Attempt(Binlog([]), Transactions([]))
    attempt.stream._rows(transaction(1, [2])[0])  # type: ignore[arg-type]
    assert attempt.delivery.until_done(waiting(attempt, 3), "a store") == "done"
    attempt.delivery._open_seconds = 0.1
    with pytest.raises(TransactionLostError, match="waiting for a store: it does not answer"):
        attempt.delivery.until_done(waiting(attempt, 1000), "a store")
