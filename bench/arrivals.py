"""When a topic's records arrived at the broker, by the broker's own clock: the same measure for every program."""

from __future__ import annotations

import time
from collections.abc import Callable

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from stack.kafka import Kafka

PATIENCE_SECONDS = 600
POLL_SECONDS = 0.02


class PeerError(RuntimeError):
    """A program that ended, or did not deliver in time."""


class Arrivals:
    """A new topic of one partition whose records have the broker's time."""

    def __init__(self, kafka: Kafka, topic: str) -> None:
        settings = {"message.timestamp.type": "LogAppendTime"}
        admin = AdminClient({"bootstrap.servers": kafka.address})
        for made in admin.create_topics([NewTopic(topic, 1, 1, config=settings)]).values():
            made.result()
        self._partition = TopicPartition(topic, 0)
        self._consumer = Consumer({"bootstrap.servers": kafka.address, "group.id": topic, "enable.auto.commit": False})

    def end(self) -> int:
        """The next record's offset."""
        return int(self._consumer.get_watermark_offsets(self._partition, timeout=10)[1])

    def wait(self, begin: int, count: int, alive: Callable[[], bool]) -> float:
        """Returns when `count` records have arrived from the offset `begin` on: the seconds between the first and the
        last of them. Raises PeerError."""
        until = time.monotonic() + PATIENCE_SECONDS
        while self.end() < begin + count:
            if time.monotonic() > until or not alive():
                raise PeerError(f"{self._partition.topic}: {self.end() - begin} of {count} records arrived")
            time.sleep(POLL_SECONDS)
        return self._time(begin + count - 1) - self._time(begin)

    def first(self) -> float:
        """When the topic's first record arrived: seconds, Unix."""
        return self._time(0)

    def _time(self, offset: int) -> float:
        """Seconds, Unix."""
        self._consumer.assign([TopicPartition(self._partition.topic, 0, offset)])
        while (message := self._consumer.poll(10)) is None or message.error():
            pass
        return float(message.timestamp()[1]) / 1000

    def close(self) -> None:
        self._consumer.close()
