"""How far a start looks back into the event topics, and what it takes from them."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from structlog.testing import capture_logs

from streamer.start import sent
from tests.checkpoints import checkpoint
from tests.streamer.fakes import SOURCE, pipeline

TOPIC = "sales.shop.t"
END = 5_000_000


class Message:
    def __init__(self, offset: int) -> None:
        self._offset = offset

    def error(self) -> None:
        return None

    def offset(self) -> int:
        return self._offset

    def key(self) -> bytes:
        return b"{}"

    def value(self) -> bytes | None:
        """Transaction n at the offset n; each tenth a tombstone, each second in Debezium's form."""
        gtid = f"{SOURCE}:{self._offset}"
        told = {"source": {"gtid": gtid}}
        told = {"schema": {}, "payload": told} if self._offset % 2 else told  # in Debezium's form
        return json.dumps(told).encode() if self._offset % 10 else None


class Topic:
    """A topic of END records, of which time alone would have all read."""

    starts: list[int]

    def __init__(self) -> None:
        self.starts = []

    def list_topics(self, timeout: float) -> Any:
        return SimpleNamespace(topics={TOPIC: SimpleNamespace(partitions={0: None})})

    def offsets_for_times(self, asked: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        return [TopicPartition(one.topic, one.partition, 0) for one in asked]

    def get_watermark_offsets(self, partition: TopicPartition, timeout: float) -> tuple[int, int]:
        return 0, END

    def assign(self, partitions: list[TopicPartition]) -> None:
        [one] = partitions
        self.starts.append(one.offset)
        self._at = one.offset

    def poll(self, seconds: float) -> Message:
        self._at += 1
        return Message(self._at - 1)

    def close(self) -> None:
        self.closed = True


@pytest.fixture
def topic(monkeypatch: pytest.MonkeyPatch) -> Topic:
    found = Topic()
    monkeypatch.setattr(sent, "reader", lambda *_: found)
    monkeypatch.setattr(sent, "MARGIN", 100)
    return found


SMALL = pipeline(ledger={"max_events": 1000})


def test_no_more_is_read_than_waiting_queues_hold_however_old_the_checkpoint_is(topic: Topic) -> None:
    found = sent.behind(SMALL, checkpoint(gtid_set=f"{SOURCE}:1-{END - 15}"))
    assert topic.starts == [END - 4100]
    assert str(found) == f"{SOURCE}:{END - 14}-{END - 11}:{END - 9}-{END - 1}"


def test_what_a_start_reads_again_for_an_open_xa_transaction_was_sent_too(topic: Topic) -> None:
    found = sent.behind(SMALL, checkpoint(gtid_set=f"{SOURCE}:1-50", seen_set=f"{SOURCE}:1-{END}"))
    assert str(found) == f"{SOURCE}:51-{END}"


def test_a_stop_is_heard_and_long_reading_is_told(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sent, "TELL_SECONDS", 0)
    stops = iter([False] * 30)
    with capture_logs() as logs:
        found = sent.behind(SMALL, checkpoint(gtid_set=""), lambda: next(stops, True))
    assert 10 < len(str(found)) < 10_000, "a part"
    assert logs[-1]["records"] < 30
    assert logs[-1]["topic"] == TOPIC
    assert topic.closed


class Several(Topic):
    """Three topics of three records."""

    def list_topics(self, timeout: float) -> Any:
        return SimpleNamespace(topics={name: SimpleNamespace(partitions={0: None}) for name in (TOPIC, "vip", "else")})

    def offsets_for_times(self, asked: list[TopicPartition], timeout: float) -> list[TopicPartition]:
        self.asked = [one.topic for one in asked]
        return [TopicPartition(one.topic, one.partition, 1) for one in asked]

    def get_watermark_offsets(self, partition: TopicPartition, timeout: float) -> tuple[int, int]:
        return 0, 4


def test_topics_that_transforms_chose_are_read_too_and_another_pipelines_records_are_passed_by(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def value(message: Message) -> bytes:
        name = "another" if message.offset() == 2 else "sales"
        return json.dumps({"source": {"gtid": f"{SOURCE}:{message.offset()}", "name": name}}).encode()

    monkeypatch.setattr(Message, "value", value)
    monkeypatch.setattr(sent, "reader", lambda *_: found)
    found = Several()
    assert str(sent.behind(SMALL, checkpoint(topics=("vip", "deleted")))) == f"{SOURCE}:1:3"
    assert found.asked == [TOPIC, "vip"]


def test_of_a_pipeline_without_topics_nothing_is_asked(topic: Topic, monkeypatch: pytest.MonkeyPatch) -> None:
    """As behind an edit of kafka.topic: librdkafka refuses a question about no partition."""
    monkeypatch.setattr(topic, "list_topics", lambda timeout: SimpleNamespace(topics={}))
    monkeypatch.delattr(Topic, "offsets_for_times")
    assert str(sent.behind(SMALL, checkpoint(gtid_set=""))) == ""


FOREIGN = (
    b"hello",
    b"\xff\x00\x01",
    b"[1]",
    b'{"source":"x"}',
    b'{"source":{"gtid":"nonsense"}}',
    b'{"source":{"gtid":5}}',
)


@pytest.mark.parametrize("value", FOREIGN)
def test_what_others_write_into_a_topic_that_transforms_chose_is_passed_by(
    topic: Topic, monkeypatch: pytest.MonkeyPatch, value: bytes
) -> None:
    monkeypatch.setattr(Message, "value", lambda message: value)
    assert str(sent.behind(SMALL, checkpoint(gtid_set=""))) == ""
