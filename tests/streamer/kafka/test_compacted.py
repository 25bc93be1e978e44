from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from confluent_kafka import TopicPartition

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
