from __future__ import annotations

from itertools import count
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, TopicPartition

from streamer.delivery_errors import BrokerUnreachableError
from streamer.kafka import compacted
from tests.streamer.fakes import pipeline


class Message:
    def __init__(self, offset: int) -> None:
        self._offset = offset

    def error(self) -> None:
        return None

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes:
        return b"k"

    def value(self) -> bytes:
        return b"%d" % self._offset


class Growing:
    """A consumer of a topic that another writes to all the time; `offsets` are those of its records."""

    offsets: Any = None

    def __init__(self, settings: dict[str, Any]) -> None:
        self.closed = False

    def get_watermark_offsets(self, partition: TopicPartition, timeout: float) -> tuple[int, int]:
        return 3, 6

    def assign(self, partitions: list[TopicPartition]) -> None:
        assert [p.offset for p in partitions] == [3]

    def poll(self, seconds: float) -> Message:
        return Message(next(self.offsets))

    def close(self) -> None:
        self.closed = True


def test_a_broker_that_has_gone_away_is_no_sign_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its error comes again and again; a start would wait for ever, and hear no stop."""
    gone = SimpleNamespace(error=lambda: KafkaError(KafkaError._ALL_BROKERS_DOWN))
    monkeypatch.setattr(Growing, "poll", lambda self, seconds: gone)
    monkeypatch.setattr(compacted, "Consumer", Growing)
    monkeypatch.setattr(compacted, "PATIENCE_SECONDS", 0.05)
    with pytest.raises(BrokerUnreachableError, match="nothing came"):
        compacted.read(pipeline().kafka, "t")
    monkeypatch.setattr(compacted, "PATIENCE_SECONDS", 60)
    stops = iter([False, False, True])
    assert compacted.read(pipeline().kafka, "t", None, lambda: next(stops)) == []


@pytest.mark.parametrize(
    ("offsets", "read"),
    [(count(3), [b"3", b"4", b"5"]), (iter([3, 4, 7, 8]), [b"3", b"4"])],
    ids=["every offset a record", "the last one a transaction's end"],
)
def test_reading_ends_where_the_topic_ended_at_its_start(
    monkeypatch: pytest.MonkeyPatch, offsets: Any, read: list[bytes]
) -> None:
    monkeypatch.setattr(Growing, "offsets", offsets)
    monkeypatch.setattr(compacted, "Consumer", Growing)
    assert [value for _, value in compacted.read(pipeline().kafka, "t")] == read
