"""A pipeline's topics read back: their records, without a replay's duplicates, and the table that they make."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, NamedTuple

from confluent_kafka import Consumer, KafkaError, TopicPartition

from stack.kafka import Kafka


class Record(NamedTuple):
    partition: int
    key: Any
    value: Any
    headers: tuple[tuple[str, bytes], ...] = ()
    at: float = 0.0  # Unix seconds: when it was sent

    @property
    def seq(self) -> tuple[int, ...]:
        return tuple(self.value["source"]["seq"])

    @property
    def identity(self) -> tuple[str, int, int]:
        return (self.value["source"]["gtid"], self.seq[3], self.seq[4])


def records(kafka: Kafka, topic: str) -> list[Record]:
    """All of a topic's records, partition by partition in offset order."""
    return list(_records(kafka, topic))


def _records(kafka: Kafka, topic: str) -> Iterator[Record]:
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.address,
            "group.id": "test",
            "enable.partition.eof": True,
            "fetch.wait.max.ms": 10,  # the broker would else wait half a second at the end of each partition
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
        }
    )
    try:
        partitions = consumer.list_topics(topic, timeout=10).topics[topic].partitions
        for partition in sorted(partitions):
            consumer.assign([TopicPartition(topic, partition, 0)])
            while True:
                message = consumer.poll(20)
                assert message is not None, "the broker is silent"
                if (error := message.error()) is not None:
                    assert error.code() == KafkaError._PARTITION_EOF, error
                    break
                key, value = message.key(), message.value()
                # The commit log's key is the pipeline's bare name.
                shown = json.loads(key) if key and key[:1] == b"{" else key
                told = value and json.loads(value)
                yield Record(partition, shown, told, tuple(message.headers() or ()), message.timestamp()[1] / 1000)
    finally:
        consumer.close()


def once(found: list[Record]) -> list[Record]:
    """Without a replay's duplicates, as the lake cuts them: in each partition only what is above its mark. Checks
    that a replay repeats the same records in the same order."""
    kept: list[Record] = []
    by_partition: dict[int, list[Record]] = {}
    for record in found:
        by_partition.setdefault(record.partition, []).append(record)
    for sequence in by_partition.values():
        kept += _once(sequence)
    return kept


def _once(sequence: list[Record]) -> list[Record]:
    kept: list[Record] = []
    places: dict[tuple[int, ...], int] = {}
    expected: int | None = None  # place in `kept` of the record that a replay must send next
    for record in sequence:
        if not kept or record.seq > kept[-1].seq:
            assert expected is None or expected == len(kept), "a replay left records out"
            expected = None
            places[record.seq] = len(kept)
            kept.append(record)
            continue
        place = places[record.seq]
        assert _same(kept[place], record), "a replay changed a record"
        # Either the replay goes on, or another one begins (the streamer was killed again).
        assert place == expected or expected is None or place < expected, "a replay left records out"
        expected = place + 1
    return kept


def _same(one: Record, other: Record) -> bool:
    return one.key == other.key and {**one.value, "ts_ms": 0} == {**other.value, "ts_ms": 0}


def silence(found: list[Record]) -> float:
    """The longest time between one record and the next, in seconds."""
    sent = sorted(record.at for record in found)
    return max(after - before for before, after in pairwise(sent))


def replayed(found: list[Record]) -> dict[int, tuple[Any, ...]]:
    """The table that the events make."""
    table: dict[int, tuple[Any, ...]] = {}
    for record in found:
        after = record.value["after"]
        if after is None:
            del table[record.key["id"]]
        else:
            table[record.key["id"]] = tuple(after.values())
    return table
