"""What every sink does, whatever is behind it.

A subclass says how one is made and how its records are read:

    class TestMySink(SinkSuite):
        def sink(self): return MySink({"url": ...}, pipeline)
        def stored(self): return [(topic, key, value), ...]  # each as bytes, in the order of each topic's records
"""

from __future__ import annotations

import json
import time
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from streamer.sinks.port import Sink

SECONDS = 30.0
Stored = tuple[str, bytes | None, bytes]


class Fates:
    """What was told of the records of one call."""

    def __init__(self) -> None:
        self.errors: list[Any] = []
        self.topics: list[str] = []

    def __call__(self, error: Any, message: Any) -> None:
        self.errors.append(error)
        self.topics.append(message.topic())


class SinkSuite:
    """`topics`: two names, which a subclass may replace. Each test has a place of its own, which begins empty."""

    topics: tuple[str, str] = ("suite.shop.orders", "suite.shop.items")

    @abstractmethod
    def sink(self) -> Sink:
        """A new one, over the place of the test."""

    @abstractmethod
    def stored(self) -> list[Stored]:
        """All durable records of the place, those of a topic in their order. Asked when no sink is open."""

    @pytest.fixture
    def opened(self) -> Iterator[Sink]:
        sink = self.sink()
        yield sink
        sink.close()

    def test_each_record_is_acknowledged_once(self, opened: Sink) -> None:
        fates = [send(opened, self.topics[0], range(n, n + 3)) for n in range(0, 30, 3)]
        assert flushed(opened)
        opened.poll(0)
        assert [fate.errors for fate in fates] == [[None] * 3] * 10
        assert {topic for fate in fates for topic in fate.topics} == {self.topics[0]}

    def test_nothing_is_told_but_when_the_sink_is_asked(self, opened: Sink) -> None:
        fates = [send(opened, self.topics[0], [n]) for n in range(20)]
        time.sleep(0.2)
        assert [fate.errors for fate in fates] == [[]] * 20, "told from send, or by another thread"
        assert flushed(opened)

    def test_polling_alone_brings_every_acknowledgement(self, opened: Sink) -> None:
        fate = send(opened, self.topics[0], range(5))
        opened.flush(0)
        until = time.monotonic() + SECONDS
        while len(fate.errors) < 5 and time.monotonic() < until:
            opened.poll(0.05)
        assert fate.errors == [None] * 5

    def test_flush_tells_how_many_are_not_acknowledged(self, opened: Sink) -> None:
        assert opened.flush(0) == 0
        send(opened, self.topics[0], range(3))
        assert 0 <= opened.flush(0) <= 3
        assert flushed(opened)
        assert opened.flush(0) == 0

    def test_what_is_acknowledged_is_there(self, opened: Sink) -> None:
        keys = [b'{"id":1}', None, '{"name":"ä\\n€😀"}'.encode()]
        values = [b'{"after":{"id":1}}', b"[]", json.dumps({"text": 'a "quoted"\n line \u2028 é'}).encode()]
        fates = Fates()
        opened.send(self.topics[0], keys, values, fates)
        assert flushed(opened)
        opened.close()
        assert same(self.stored(), [(self.topics[0], *record) for record in zip(keys, values, strict=True)])

    def test_records_keep_their_order(self, opened: Sink) -> None:
        for n in range(200):
            send(opened, self.topics[n % 2], [n], key=b'{"id":7}')
            if n % 50 == 0:
                opened.poll(0)
        assert flushed(opened)
        opened.close()
        found = self.stored()
        for number, topic in enumerate(self.topics):
            assert [json.loads(value) for name, _, value in found if name == topic] == list(range(number, 200, 2))

    def test_a_sink_goes_on_where_one_ended(self) -> None:
        for n in range(3):
            sink = self.sink()
            send(sink, self.topics[0], range(10 * n, 10 * n + 10), key=b'{"id":7}')
            assert flushed(sink)
            sink.close()
        assert [json.loads(value) for _, _, value in self.stored()] == list(range(30))

    def test_closing_gives_up_what_waits_and_does_not_hang(self) -> None:
        sink = self.sink()
        fate = send(sink, self.topics[0], range(1000))
        began = time.monotonic()
        sink.close()
        assert time.monotonic() - began < SECONDS
        told, found = sum(error is None for error in fate.errors), Counter(value for *_, value in self.stored())
        assert max(found.values(), default=1) == 1, "a record came twice"
        assert len(found) >= told, "acknowledged, and not there"

    def test_a_large_batch(self, opened: Sink) -> None:
        values = [json.dumps({"n": n, "text": "x" * 100_000}).encode() for n in range(20)]
        opened.send(self.topics[0], [b"1"] * 20, values, Fates())
        assert flushed(opened)
        opened.close()
        assert [value for *_, value in self.stored()] == values

    def test_it_is_well(self, opened: Sink) -> None:
        assert opened.probe(5.0)
        assert opened.last_error == ""
        assert opened.title


def send(sink: Sink, topic: str, numbers: Any, key: bytes | None = b'{"id":1}') -> Fates:
    """Records whose values are these numbers."""
    values = [b"%d" % n for n in numbers]
    fates = Fates()
    sink.send(topic, [key] * len(values), values, fates)
    return fates


def flushed(sink: Sink) -> bool:
    return sink.flush(SECONDS) == 0


def same(found: list[Stored], wanted: list[Stored]) -> bool:
    """Compared as JSON: a sink may write it with other blanks."""

    def read(data: bytes | None) -> Any:
        return None if data is None else json.loads(data)

    return [(t, read(k), read(v)) for t, k, v in found] == [(t, read(k), read(v)) for t, k, v in wanted]
