"""The stream over a source and a sink without servers: lost connections, fatal errors, bounds, stops."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest
from structlog.testing import capture_logs

from contract.checkpoint import Checkpoint
from contract.gtid import GtidSet
from streamer import delivery, patience, schemas
from streamer import stream as stream_module
from streamer.delivery_errors import RecordTooLargeError, StuckError, TopicError, WrongServerError
from streamer.errors import ConnectionLostError, UnknownEventError, UnsupportedTransactionError
from streamer.kafka import topics
from streamer.patience import Stopping
from streamer.protocol.model import Commit, Ddl, Item, OpenXa
from streamer.schemas import Schemas
from tests.streamer.fakes import FILE, SOURCE, Binlog, ListSink, Rig, rig, shape, transaction


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "RECONNECT_FIRST_SECONDS", 0.001)


def ddl(number: int, statement: str) -> list[Item]:
    """A transaction of one statement."""
    gtid, pos = f"{SOURCE}:{number}", 1000 * number
    return [Ddl("shop", statement, gtid, FILE, pos, 10**15), Commit(gtid, FILE, pos + 900, pos, None, 10**15, 1)]


def lost() -> ConnectionLostError:
    return ConnectionLostError("reading", "the binlog", "cut", "It is opened again.")


def seqs(found: list[Any]) -> list[tuple[int, ...]]:
    return [tuple(event["source"]["seq"]) for event in found]


def run_until_released(what: Rig, number: int) -> None:
    """Runs until transaction `number` is released, then stops and drains."""
    end = GtidSet.parse(f"{SOURCE}:1-{number}")

    def watch() -> None:
        until = time.monotonic() + 20
        while time.monotonic() < until and what.ledger.released != end:
            time.sleep(0.002)
        what.stop.set()

    thread = threading.Thread(target=watch)
    thread.start()
    with pytest.raises(Stopping):
        what.stream.run()
    thread.join()
    assert what.stream.delivery.drain(10)
    assert what.ledger.released == end


def test_ddl_and_truncations_are_released_with_their_transactions_and_are_no_rows() -> None:
    binlog = Binlog([ddl(1, "CREATE TABLE t (id INT)"), transaction(2, [2]), ddl(3, "TRUNCATE t"), transaction(4, [1])])
    what = rig(binlog)
    run_until_released(what, 4)
    assert [event["op"] for event in what.sink.events()] == ["c", "c", "t", "t", "c"], "in each of two partitions"
    assert seqs(what.sink.events()) == sorted(seqs(what.sink.events()))
    assert [(told["kind"], told["pos"]) for told in what.sink.values("sales.ddl")] == [
        ("shape", 1000),
        ("truncate", 3000),
    ]
    assert what.sink.checkpoints()[-1].events == what.ledger.events == 3
    assert what.ledger.depth == what.ledger.size == 0


def test_truncations_ask_the_broker_once_for_the_table_s_topic_and_its_partitions() -> None:
    """The reading thread would wait for each answer."""
    what = rig(Binlog([ddl(n, "TRUNCATE t") for n in range(1, 21)]))
    made: list[str] = []

    def ensure(wanted: list[topics.Wanted]) -> list[topics.Report]:
        made.extend(one.name for one in wanted)
        return []

    what.stream.router._ensure = ensure
    run_until_released(what, 20)
    assert len(what.sink.events()) == 40
    assert (made, what.sink.counted) == (["sales.shop.t"], ["sales.shop.t"])


def test_a_topic_that_the_broker_does_not_know_is_told_while_it_is_waited_for_and_then_ends_the_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(patience, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(delivery, "UNKNOWN_SECONDS", 0.2)
    what = rig(Binlog([ddl(1, "TRUNCATE t")]))
    what.sink.unknown.add("sales.shop.t")
    waited: list[str] = []
    note = what.status.note
    monkeypatch.setattr(what.status, "note", lambda error: (note(error), waited.append(what.status.waiting_for)))
    with (
        capture_logs() as logs,
        pytest.raises(TopicError, match=r"sales\.shop\.t: .*knows no partition.* deleted"),
    ):
        what.stream.run()
    assert "the partitions of topic sales.shop.t" in waited
    assert [line["waiting_for"] for line in logs if line["event"] == "waiting"] == [waited[-1]]


def test_a_truncation_while_the_broker_is_away_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "RETRY_SECONDS", 0.01)
    monkeypatch.setattr(delivery, "UNKNOWN_SECONDS", 0.05)
    what = rig(Binlog([ddl(1, "TRUNCATE t")]))
    what.sink.away = True
    threading.Timer(0.5, setattr, (what.sink, "away", False)).start()
    run_until_released(what, 1)
    assert len(what.sink.events()) == 2


@pytest.mark.parametrize("read_from", [(FILE, 2_000), None])
def test_a_start_that_reads_an_open_xa_transaction_again_knows_where_it_begins(
    read_from: tuple[str, int] | None,
) -> None:
    """Pitfall "Binlog files over 4 GiB": behind a transaction of gigabytes the server tells 32 bits alone."""
    far = 5_600_000_000
    binlog = [transaction(1, [1]), transaction(2, []), transaction(3, [1])]
    for one in binlog[1:]:
        end = one[-1]
        assert isinstance(end, Commit)
        end.open_xa, end.read_from = (OpenXa(f"{SOURCE}:2", ""),), read_from
        end.pos += far
    what = rig(Binlog(binlog))
    run_until_released(what, 3)
    last = what.sink.checkpoints()[-1]
    assert last.pos == far + 3900
    assert Checkpoint.read(last.model_dump_json()).read_from == read_from
    again = Binlog(binlog)
    what = rig(again, begin=last)
    if read_from is None:
        with pytest.raises(UnsupportedTransactionError, match=f"{FILE}:{last.pos}, beyond 4 GiB"):
            what.stream.run()
    else:
        run_until_released(what, 3)
        assert again.behind == [read_from]


def test_a_checkpoint_leaves_out_an_open_xa_transaction() -> None:
    opened = (OpenXa(f"{SOURCE}:2", ""),)
    binlog = [transaction(1, [1]), transaction(2, []), transaction(3, [1]), transaction(4, [1])]
    for one in binlog[1:3]:
        end = one[-1]
        assert isinstance(end, Commit)
        end.open_xa = opened
    what = rig(Binlog(binlog[:3]))
    run_until_released(what, 3)
    last = what.sink.checkpoints()[-1]
    assert (last.gtid_set, last.seen_set) == (f"{SOURCE}:1:3", f"{SOURCE}:1-3")
    assert last.pos == 3900
    what = rig(Binlog(binlog))
    run_until_released(what, 4)
    last = what.sink.checkpoints()[-1]
    assert (last.gtid_set, last.seen_set) == (f"{SOURCE}:1-4", "")


def test_a_connection_lost_anywhere_loses_and_repeats_nothing() -> None:
    transactions = [transaction(n, [2, 1, 3] if n % 3 else []) for n in range(1, 40)]
    binlog = Binlog(transactions, breaks=[1, 5, 2, 7, 3, 3, 4, 1], lost=lost)
    what = rig(binlog)
    run_until_released(what, 39)
    expected = [
        (0, 1, 1000 * n, e, r) for n in range(1, 40) if n % 3 for e, size in enumerate([2, 1, 3]) for r in range(size)
    ]
    assert seqs(what.sink.events()) == expected
    assert what.stream.reconnects >= 8
    positions = [(c.pos, c.events) for c in what.sink.checkpoints()]
    assert positions == sorted(positions), "a checkpoint moved back"
    assert what.sink.checkpoints()[-1].gtid_set == f"{SOURCE}:1-39"
    assert what.sink.checkpoints()[-1].events == len(expected)


def test_each_further_loss_waits_longer_up_to_a_bound_and_never_in_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pitfall "Silent stall": reconnect with backoff."""
    monkeypatch.setattr(stream_module, "RECONNECT_FIRST_SECONDS", 0.5)
    pauses: list[float] = []
    what = rig(Binlog([transaction(1, [1])], breaks=[0] * 40, lost=lost))

    def rest(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 40:
            what.stop.set()

    monkeypatch.setattr(what.stream.delivery, "rest", rest)
    with pytest.raises(Stopping):
        what.stream.run()
    bounds = [min(15.0, 0.5 * 2**n) for n in range(1, 41)]
    assert all(bound / 2 <= pause <= bound for pause, bound in zip(pauses, bounds, strict=True))
    assert len({round(pause, 6) for pause in pauses[10:]}) > 20, "two streamers do not knock together"


def test_a_server_that_lost_a_half_sent_transaction_is_refused() -> None:
    binlog = Binlog([transaction(1, [2, 2])], breaks=[1], lost=lost)
    what = rig(binlog)
    start = binlog.connect

    def connect(gtids: Any) -> Binlog:
        if binlog.starts:
            binlog.transactions = [transaction(2, [1])]
        return start(gtids)

    what.stream._connect = connect
    with pytest.raises(WrongServerError, match="lost committed transactions"):
        what.stream.run()


def test_a_fatal_error_comes_after_what_was_accepted_before_it() -> None:
    fatal = UnknownEventError("decoding", f"{SOURCE}", "type 200", "Upgrade.")
    what = rig(Binlog([transaction(n, [3]) for n in range(1, 30)], error=fatal))
    with pytest.raises(UnknownEventError):
        what.stream.run()
    assert what.stream.delivery.drain(10)
    assert len(what.sink.events()) == 87
    assert what.sink.checkpoints()[-1].gtid_set == f"{SOURCE}:1-29"


@pytest.mark.parametrize("bound", ["events", "bytes"])
def test_nothing_is_read_while_the_ledger_is_full(bound: str) -> None:
    sink = ListSink()
    binlog = Binlog([transaction(n, [10]) for n in range(1, 200)])
    what = rig(binlog, sink, ledger={"max_events": 100 if bound == "events" else 1_000_000})
    if bound == "bytes":
        what.ledger.max_bytes = 30_000
    what.stream.router.route(transaction(1, [1])[0], 0)  # type: ignore[arg-type]
    sink.away = True

    def run() -> None:
        with pytest.raises(Stopping):
            what.stream.run()

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.5)
    if bound == "events":
        assert what.ledger.depth == 100
    else:
        assert 30_000 <= what.ledger.size < 36_000, "one rows event may overshoot it"
    assert binlog.read <= 21
    sink.away = False
    what.stop.set()
    thread.join()


def test_a_schema_is_acknowledged_before_its_first_record() -> None:
    wide = shape("id", "v", "w")
    what = rig(Binlog([transaction(1, [2]), transaction(2, [2], wide), transaction(3, [2])]))
    run_until_released(what, 3)
    order = [topic for topic, _, _ in what.sink.records if topic != "sales.commit-log"]
    assert order == ["sales.schemas", *["sales.shop.t"] * 2] * 3
    assert [event["source"]["schema"] for event in what.sink.events()] == [1, 1, 2, 2, 3, 3]


class CrashError(Exception):
    pass


class CrashingSink(ListSink):
    """The process dies when so many records are with the broker."""

    def __init__(self, records: int) -> None:
        super().__init__()
        self._left = records

    def send(self, topic: str, keys: Sequence[bytes | None], values: Sequence[bytes], callback: Any) -> None:
        for key, value in zip(keys, values, strict=True):
            if not self._left:
                raise CrashError
            self._left -= 1
            super().send(topic, [key], [value], callback)


def test_a_crash_between_a_schema_and_its_first_record_changes_no_version() -> None:
    wide = shape("id", "v", "w")
    binlog = [transaction(1, [2]), transaction(2, [2], wide), transaction(3, [2])]
    for records in range(9):
        crashing = CrashingSink(records)
        with suppress(CrashError):
            rig(Binlog(binlog), crashing).stream.run()
        durable = [(key, value) for topic, key, value in crashing.records if topic == "sales.schemas"]
        again = rig(Binlog(binlog), schemas=Schemas(schemas.parse(durable, "sales.schemas")))
        run_until_released(again, 3)
        assert [event["source"]["schema"] for event in again.sink.events()] == [1, 1, 2, 2, 3, 3]
        told = durable + [(key, value) for topic, key, value in again.sink.records if topic == "sales.schemas"]
        assert [json.loads(key or b"")["version"] for key, _ in told] == [1, 2, 3], "each once, in order"


def test_a_head_that_rests_while_the_broker_answers_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamer.watcher.PROBE_EVERY_SECONDS", 0.1)
    sink = ListSink()
    what = rig(Binlog([transaction(1, [1]), transaction(2, [1])]), sink, stuck_after_seconds=1.2)
    what.stream.router.route(transaction(1, [1])[0], 0)  # type: ignore[arg-type]
    sink.away = True
    sink.probe = lambda seconds: True  # type: ignore[method-assign]
    with pytest.raises(StuckError, match="although the broker answers"):
        what.stream.run()


def test_a_head_that_moves_on_is_never_taken_for_the_one_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Although each has as many records on their way, and may lie at the same address."""
    monkeypatch.setattr("streamer.watcher.PROBE_EVERY_SECONDS", 0.1)
    what = rig(Binlog([]), stuck_after_seconds=1)
    now = time.monotonic()
    monkeypatch.setattr("streamer.watcher.time.monotonic", lambda: now)
    addresses = set()
    for _ in range(40):
        head = what.ledger.enter(1, 10, now)
        addresses.add(id(head))
        now += 0.2
        what.watcher.turn(now)
        head.acknowledge(None, None)
        del head
        what.ledger.release()
    assert len(addresses) < 5, "memory is used again, or this shows nothing"


def test_a_broker_that_is_away_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("streamer.watcher.PROBE_EVERY_SECONDS", 0.1)
    sink = ListSink()
    what = rig(Binlog([transaction(n, [2]) for n in range(1, 5)]), sink, stuck_after_seconds=1)
    what.stream.router.route(transaction(1, [1])[0], 0)  # type: ignore[arg-type]
    what.status.enter("streaming")
    sink.away = True
    seen = []

    def come_back() -> None:
        time.sleep(2.5)
        seen.append((what.status.state, what.status.waiting_for))
        sink.away = False

    thread = threading.Thread(target=come_back)
    thread.start()
    run_until_released(what, 4)
    thread.join()
    assert seen == [("waiting", "Kafka")]
    assert len(what.sink.events()) == 8


def test_a_stop_flushes_what_was_taken_in() -> None:
    binlog = Binlog([transaction(n, [2]) for n in range(1, 500)])
    what = rig(binlog)
    threading.Timer(0.2, what.stop.set).start()
    with pytest.raises(Stopping):
        what.stream.run()
    assert what.stream.delivery.drain(10)
    last = what.sink.checkpoints()[-1]
    assert last.events == len(what.sink.events())


@pytest.mark.parametrize("at", [0, 1, 2])
def test_a_record_that_cannot_be_sent_ends_the_drain_when_what_was_before_it_is_acknowledged(at: int) -> None:
    class Choosy(ListSink):
        def send(self, topic: str, keys: Sequence[bytes | None], values: Sequence[bytes], callback: Any) -> None:
            bad = b'"id":%d,' % (9_000_000 + at)
            sent = next((n for n, value in enumerate(values) if bad in value), len(values))
            super().send(topic, keys[:sent], values[:sent], callback)
            if sent < len(values):
                raise RecordTooLargeError("sending", "a record", "it is too large", "Raise the limit.")

    what = rig(Binlog([transaction(n, [3]) for n in range(1, 20)]), Choosy())
    with pytest.raises(RecordTooLargeError):
        what.stream.run()
    began = time.monotonic()
    assert what.stream.delivery.drain(60)
    assert time.monotonic() - began < 10
    assert what.sink.checkpoints()[-1].gtid_set == f"{SOURCE}:1-8"


def test_a_commit_log_that_refuses_ends_the_drain_at_once() -> None:
    what = rig(Binlog([transaction(n, [1]) for n in (1, 2)]))
    run_until_released(what, 2)
    what.checkpoints.offer(what.watcher.checkpoint)
    what.checkpoints._acknowledge("refused", None)
    began = time.monotonic()
    assert not what.stream.delivery.drain(60)
    assert time.monotonic() - began < 5


def test_a_connection_lost_between_ddl_and_the_rows_of_its_transaction_tells_of_it_once() -> None:
    """`CREATE TABLE ... SELECT` is one transaction: its DDL, its rows, its end."""
    made = [ddl(1, "CREATE TABLE t (id INT)")[0], *transaction(1, [2, 1])]
    what = rig(Binlog([made], breaks=[1], lost=lost))
    run_until_released(what, 1)
    assert len(what.sink.values("sales.ddl")) == 1
    assert seqs(what.sink.events()) == [(0, 1, 1000, 0, 0), (0, 1, 1000, 0, 1), (0, 1, 1000, 1, 0)]


@pytest.mark.parametrize("breaks", [[], [1]], ids=["whole", "lost in between"])
def test_each_statement_of_a_transaction_is_told_of_once(breaks: list[int]) -> None:
    one, end = ddl(1, "FROBNICATE")
    other = ddl(1, "FROBNICATE AGAIN")[0]
    what = rig(Binlog([[one, other, end]], breaks=breaks, lost=lost))
    run_until_released(what, 1)
    assert [told["statement"] for told in what.sink.values("sales.ddl")] == ["FROBNICATE", "FROBNICATE AGAIN"]


@pytest.mark.parametrize("breaks", range(1, 6))
def test_ddl_behind_and_between_rows_is_told_of_once_wherever_the_connection_is_lost(breaks: int) -> None:
    rows, more, end = transaction(1, [2, 1])
    whole = [ddl(1, "FROBNICATE")[0], rows, ddl(1, "FROBNICATE AGAIN")[0], more, ddl(1, "AND AGAIN")[0], end]
    what = rig(Binlog([whole], breaks=[breaks, breaks], lost=lost))
    run_until_released(what, 1)
    statements = [told["statement"] for told in what.sink.values("sales.ddl")]
    assert statements == ["FROBNICATE", "FROBNICATE AGAIN", "AND AGAIN"]
    assert seqs(what.sink.events()) == [(0, 1, 1000, 0, 0), (0, 1, 1000, 0, 1), (0, 1, 1000, 1, 0)]
