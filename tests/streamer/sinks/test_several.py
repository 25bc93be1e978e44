"""Several sinks: durable is what all of them have, each tells its own health, and one that is away holds the rest."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from structlog.testing import capture_logs

from streamer import watcher as watching
from streamer.checkpoints.kafka import KafkaCheckpoints
from streamer.contract_suites.sink import Fates
from streamer.control.report import _sinks
from streamer.delivery import Delivery
from streamer.delivery_errors import AwayError, SinkError
from streamer.patience import Patience, Stopping
from streamer.sinks import own
from streamer.sinks.background import BackgroundSink
from streamer.sinks.port import Partitioned
from streamer.sinks.several import SeveralSinks
from streamer.watcher import Watcher
from tests.streamer.fakes import Binlog, ListSink, Rig, pipeline, rig, transaction


def drained(sinks: SeveralSinks) -> None:
    for _ in range(200):
        sinks.poll(0)


class Gathering(ListSink):
    """Keeps its records for a moment, as Kafka's client does."""

    hastened = 0

    def hasten(self) -> None:
        self.hastened += 1


def test_what_a_sink_gathers_goes_out_when_the_source_rests() -> None:
    one, other = Gathering(), ListSink()
    built = rig(Binlog([]), SeveralSinks([one, other]))
    delivery = built.stream.delivery
    delivery.pause()
    assert one.hastened == 0, "nothing is on its way"
    delivery.rows("t", [b"1"], [b"1"])
    delivery.pause()
    assert one.hastened == 1


def test_a_record_is_acknowledged_when_the_last_sink_has_it() -> None:
    one, other = ListSink(), ListSink()
    both, fates = SeveralSinks([one, other]), Fates()
    other.away = True
    both.send("t", [b"1", b"2"], [b"1", b"2"], fates)
    drained(both)
    time.sleep(0.01)
    assert fates.errors == []
    assert [lane.waiting for lane in both.lanes] == [0, 2]
    assert [lane.lag_seconds > 0 for lane in both.lanes] == [False, True]
    other.away = False
    drained(both)
    assert fates.errors == [None, None]
    assert [lane.waiting for lane in both.lanes] == [0, 0]
    assert one.records == other.records == [("t", b"1", b"1"), ("t", b"2", b"2")]


def test_an_error_of_one_is_told_at_once() -> None:
    both, fates = SeveralSinks([ListSink(), ListSink()]), Fates()
    both.send("t", [b"1"], [b"1"], fates)
    callback, _ = both.lanes[1].sink._waiting.pop()  # type: ignore[attr-defined]
    error = SinkError("writing", "x", "no", "Mend it.")
    callback(error, type("Message", (), {"topic": lambda self: "t"})())
    drained(both)
    assert fates.errors == [error], "and what the other says of it changes nothing"


@pytest.mark.parametrize("key", [None, b"{}"])
@pytest.mark.parametrize("kafka", [0, 1])
def test_a_record_for_every_partition_is_one_record_elsewhere(kafka: int, key: bytes | None) -> None:
    one, other = ListSink(), ListSink()
    both, fates = SeveralSinks([one, other]), Fates()
    both._partitioned = both.lanes[kafka].sink  # type: ignore[assignment]
    both.send_everywhere("t", key, b"1", both.partitions("t"), fates)
    drained(both)
    assert fates.errors == [None, None]
    assert sorted([len(one.records), len(other.records)]) == [1, 2]
    assert len(both.lanes[kafka].sink.records) == 2  # type: ignore[attr-defined]
    assert {found for _, found, _ in one.records + other.records} == {key}


def over_both(binlog: Binlog, **streamer: Any) -> tuple[Rig, ListSink, ListSink]:
    """The rig of a stream over two sinks, the first of which keeps the checkpoints."""
    kafka, other = ListSink(1), ListSink(2)
    other.title = "the other"
    what = rig(binlog, kafka, **streamer)
    both = SeveralSinks([kafka, other])
    what.checkpoints = KafkaCheckpoints(pipeline(), kafka)
    start = what.watcher.checkpoint
    what.watcher = Watcher(what.ledger, what.checkpoints, both, what.status, start, 300)
    delivery = Delivery(what.ledger, both, what.checkpoints, what.watcher, Patience(what.status, what.stop))
    what.stream.delivery = delivery
    what.stream._watcher = what.watcher
    what.stream.router._publish = lambda schema: delivery.publish(schema, "sales.schemas")
    return what, kafka, other


def test_headers_and_tombstones_are_kafka_s_and_the_record_is_everybody_s() -> None:
    one, other = ListSink(), ListSink()
    both, fates = SeveralSinks([one, other]), Fates()
    both._partitioned = one
    both.send_one("t", b"1", b"v", fates, [("__op", b"c")], 1)
    both.send_one("t", b"1", None, fates)
    drained(both)
    assert fates.errors == [None, None]
    assert one.records == [("t", b"1", b"v"), ("t", b"1", None)]
    assert one.headers[0] == ("t", [("__op", b"c")], 1)
    assert (other.records, other.headers) == ([("t", b"1", b"v")], [])
    assert isinstance(both, Partitioned), "else a truncation would not come to each partition"


def test_the_checkpoint_follows_the_slowest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "PROBE_EVERY_SECONDS", 0.0)
    monkeypatch.setattr(watching, "QUIET_SECONDS", 0.05)
    monkeypatch.setattr(watching, "PERIOD_SECONDS", 0.0)
    binlog = Binlog([transaction(n, [2]) for n in range(1, 301)])
    what, kafka, other = over_both(binlog, ledger={"max_events": 100})
    seen: list[tuple[Any, ...]] = []

    def look() -> None:
        """Once the first rows came the other is away, until the queue is full."""
        if len(other.events()) >= 20 and not seen:
            other.away = True
        if other.away and what.ledger.full and what.watcher.healths[1].away_since:
            stood = what.checkpoints.durable
            lanes = what.stream.delivery._sink.lanes  # type: ignore[attr-defined]
            seen.append((stood and stood.events, lanes[0].waiting, lanes[1].waiting, what.status.waiting_for))
            sinks = _sinks(two_sinks(), what.stream.delivery._sink, what.watcher, what.ledger)
            seen.append(tuple(sink["healthy"] for sink in sinks))
            assert what.ledger.depth <= 102, "bounded"
            other.away = False
        if (durable := what.checkpoints.durable) and durable.events == 600:
            what.stop.set()

    real = what.watcher.turn
    monkeypatch.setattr(what.watcher, "turn", lambda now: (real(now), look())[0])
    with pytest.raises(Stopping):
        what.stream.run()
    (stood, first, second, waiting), healthy = seen
    assert (first, waiting) == (0, "the other")
    assert healthy == (True, False)
    assert second >= 90
    assert (stood or 0) + second <= 602 - 300, "the checkpoint did not pass what the other lacks"
    assert len(kafka.events()) == len(other.events()) == 600


def two_sinks() -> Any:
    made = pipeline()
    sinks = [{"type": "kafka"}, {"type": "stdout"}]
    return type(made).model_validate({**made.model_dump(exclude={"path"}), "sinks": sinks, "source": source()})


def source() -> dict[str, Any]:
    return {"host": "h", "user": "u", "password": "p", "server_id": 7}


class Slow:
    """A writer that never becomes durable until it may."""

    where = "here"

    def __init__(self) -> None:
        self.may = threading.Event()

    def write(self, topic: str, data: bytes) -> None: ...

    def due(self, now: float) -> bool:
        return True

    def sync(self) -> None:
        self.may.wait(5)

    def close(self) -> None: ...


class Broken(Slow):
    """A writer of a user's, with a mistake."""

    def __init__(self, method: str, kind: type[BaseException] = KeyError) -> None:
        super().__init__()
        self.may.set()
        self.kind = kind
        setattr(self, method, self.fail)

    def fail(self, *_: Any) -> None:
        raise self.kind("the text of a row")


@pytest.mark.parametrize(
    ("method", "kind"), [("write", KeyError), ("due", KeyError), ("sync", KeyError), ("sync", SystemExit)]
)
def test_a_mistake_of_a_writer_is_the_fate_of_its_records(method: str, kind: type[BaseException]) -> None:
    sink, fates = BackgroundSink("a webhook", Broken(method, kind)), Fates()
    sink.send("t", [b"1"], [b"1"], fates)
    until = time.monotonic() + 5
    while not fates.errors and time.monotonic() < until:
        sink.poll(0.05)
    sink.send("t", [b"2"], [b"2"], fates)
    while len(fates.errors) < 2 and time.monotonic() < until:
        sink.poll(0.05)
    assert [type(error) for error in fates.errors] == [SinkError, SinkError], "what comes behind it has the same fate"
    told = str(fates.errors[0])
    assert f"a webhook: {kind.__name__} at test_several.py:" in told
    assert "row" not in told
    assert "Mend the class" in told
    assert not sink.probe(0)
    sink.close()


def test_a_mistake_at_its_end_is_told_in_the_log_alone() -> None:
    sink = BackgroundSink("a webhook", Broken("close"))
    with capture_logs() as logs:
        sink.close()
    [line] = logs
    assert "KeyError at test_several.py" in line["error"]


def test_a_sink_of_a_users_raises_no_error_but_ours() -> None:
    class Own(ListSink):
        def send(self, *_: Any) -> None:
            raise ValueError("the text of a row")

        def probe(self, seconds: float) -> bool:
            raise AwayError("asking", "a webhook", "no answer", "It is asked again.")

    sink = own.guarded(Own(), "my_package.Own")
    with pytest.raises(SinkError, match=r"writing to my_package\.Own: ValueError at test_several\.py:\d+\. Mend"):
        sink.send("t", [b"1"], [b"1"], Fates())
    with pytest.raises(AwayError):
        sink.probe(0)
    assert sink.flush(0) == 0
    assert isinstance(sink, Partitioned), "it can what it could"


def test_a_sink_that_is_slow_holds_the_caller_no_longer_than_asked() -> None:
    writer = Slow()
    sink = BackgroundSink("slow", writer)
    fates = Fates()
    sink.send("t", [b"1"], [b"1"], fates)
    assert sink.flush(0.1) == 1
    sink.poll(0.01)
    assert fates.errors == []
    writer.may.set()
    assert sink.flush(5) == 0
    sink.close()
