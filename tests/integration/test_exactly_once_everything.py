"""Exactly once with everything on: transforms, DDL and TRUNCATE, tables of several shapes, records put aside, headers,
tombstones, heartbeats, the topic of transactions. Killed at random moments, each topic has, under read_committed, what
the writer's own book says, to the record: no gap, no duplicate, each key's changes in their order."""

from __future__ import annotations

import os
import re
from collections import defaultdict
from itertools import accumulate
from typing import Any

from confluent_kafka.admin import AdminClient

from contract.checkpoint import Checkpoint
from stack.kafka import Kafka
from stack.mysql import MySQL
from tests.integration.everything_on import (
    Book,
    Expected,
    Sent,
    Writer,
    everything_on,
    expected,
    killed_at_random,
)
from tests.integration.streaming import Make
from tests.integration.topic_records import Record, records

NAME = "allon"
KILLS = int(os.environ.get("HEADRACE_KILLS", "4"))
SERVICE = ("commit-log", "dead-letter", "ddl", "heartbeat", "schemas", "transactions")


def test_killed_at_random_moments_each_topic_has_what_was_written(make: Make, mysql: MySQL, kafka: Kafka) -> None:
    streamer = everything_on(make, NAME).started()
    before = _place(mysql)
    writer = Writer(mysql, NAME, KILLS)
    writer.start()
    killed_at_random(streamer, KILLS, KILLS)
    book = writer.end()
    assert _place(mysql)[1] - before[1] == book.transactions, "the book is not the server's"
    streamer.wait_until_released(120)
    assert streamer.stop() == 0

    told = Told(kafka, before)
    wanted = expected(NAME, book)
    assert told.topics == {*wanted.topics, *(f"{NAME}.{name}" for name in SERVICE)}
    assert all(len(sent) > 20 for sent in wanted.topics.values()), "too little was written to show anything"
    assert {kind for _, kind, _, _ in wanted.letters} == {"transform", "record_too_large"}
    assert len(book.truncations) > 0
    for topic, sent in wanted.topics.items():
        _rows(told, topic, sent, book.truncations if topic == f"{NAME}.{NAME}.plain" else [])
    _letters(told, wanted)
    _transactions(told, wanted)
    _ddl(told, book)
    _schemas(told, wanted)
    _positions(told, book)
    changes = len(book.changes)
    print(f"{KILLS} kills: {changes:,} changes of {book.transactions:,} transactions, all there once, in order")


def _place(mysql: MySQL) -> tuple[str, int]:
    """The server, and the number of its last transaction, of which nobody else writes any."""
    with mysql.connect() as connection, connection.cursor() as cursor:
        cursor.execute("SELECT @@server_uuid, @@gtid_executed")
        [(uuid, executed)] = cursor.fetchall()
    return uuid, _last(uuid, executed)


def _last(uuid: str, gtid_set: str) -> int:
    """Of the server's transactions without a tag in the set."""
    found = re.search(rf"{uuid}:((?:\d+(?:-\d+)?:?)+)", gtid_set)
    return max(map(int, re.findall(r"\d+", found[1]))) if found else 0


class Told:
    """The topics of the pipeline, read when they are asked for. `before`: the server, and the number of the transaction
    before the writer's first."""

    def __init__(self, kafka: Kafka, before: tuple[str, int]) -> None:
        self._kafka, (self._uuid, self._before) = kafka, before
        names = AdminClient({"bootstrap.servers": kafka.address}).list_topics(timeout=10).topics
        self.topics = {name for name in names if re.match(rf"{NAME}[.-]", name)}

    def number(self, gtid_set: str) -> int:
        """Of the writer's transactions, the last in the set."""
        return _last(self._uuid, gtid_set) - self._before

    def of(self, topic: str) -> list[Record]:
        return records(self._kafka, topic)

    def service(self, name: str) -> list[Any]:
        return [record.value for record in self.of(f"{NAME}.{name}")]


def _rows(told: Told, topic: str, sent: list[Sent], truncations: list[int]) -> None:
    found, emptied = [], defaultdict(list)
    by_partition: dict[int, list[Record]] = defaultdict(list)
    for record in told.of(topic):
        by_partition[record.partition].append(record)
    for partition, ones in by_partition.items():
        _tombstones(ones)
        whole = [record for record in ones if record.value is not None]
        assert [one.seq for one in whole] == sorted({one.seq for one in whole}), f"{topic}: twice, or out of its place"
        for record in whole:
            if record.value["op"] == "t":
                emptied[partition].append(told.number(record.value["source"]["gtid"]))
            else:
                _headers(record)
                found.append(record)
    found.sort(key=lambda record: record.seq)
    assert [_sent(told, record) for record in found] == sent, topic
    places: dict[str, set[int]] = defaultdict(set)
    for record in found:
        places[str(record.key)].add(record.partition)
    assert all(len(partitions) == 1 for partitions in places.values()), "a key is in one partition"
    assert dict(emptied) == dict.fromkeys(range(2) if truncations else (), truncations)


def _sent(told: Told, record: Record) -> Sent:
    value = record.value
    return Sent(told.number(value["source"]["gtid"]), value["op"], record.key, value["before"], value["after"])


def _tombstones(ones: list[Record]) -> None:
    """One right behind each delete, and nowhere else."""
    deletes = [at for at, one in enumerate(ones) if one.value is not None and one.value["op"] == "d"]
    assert [at for at, one in enumerate(ones) if one.value is None] == [at + 1 for at in deletes]
    assert all(ones[at].key == ones[at + 1].key for at in deletes)


def _headers(record: Record) -> None:
    source = record.value["source"]
    seq = str(source["seq"]).replace(" ", "")
    told = {"__op": record.value["op"], "__table": source["table"], "__gtid": source["gtid"], "__seq": seq}
    assert {name: value.decode() for name, value in record.headers} == told


def _letters(told: Told, wanted: Expected) -> None:
    letters = sorted(told.of(f"{NAME}.dead-letter"), key=lambda record: record.value["source"]["seq"])
    found = [
        (told.number(one.value["source"]["gtid"]), one.value["error"]["kind"], one.value["op"], one.key)
        for one in letters
    ]
    assert found == wanted.letters


def _transactions(told: Told, wanted: Expected) -> None:
    found = told.service("transactions")
    counts = [(one["status"], told.number(one["id"]), one["event_count"]) for one in found]
    by_transaction = sorted(wanted.by_transaction.items())
    pairs = [[("BEGIN", number, None), ("END", number, count)] for number, count in by_transaction]
    assert counts == [one for pair in pairs for one in pair]
    places: dict[int, list[int]] = defaultdict(list)
    for topic in wanted.topics:
        for record in told.of(topic):
            if record.value is not None and record.value["op"] != "t":
                places[told.number(record.value["transaction"]["id"])].append(
                    record.value["transaction"]["total_order"]
                )
    assert {number: sorted(orders) for number, orders in places.items()} == {
        number: list(range(1, count + 1)) for number, count in by_transaction
    }


def _ddl(told: Told, book: Book) -> None:
    found = [(told.number(one["gtid"]), one["statement"]) for one in told.service("ddl")]
    assert found == book.ddl


def _schemas(told: Told, wanted: Expected) -> None:
    versions: dict[str, list[int]] = defaultdict(list)
    for one in told.service("schemas"):
        versions[one["table"]].append(one["version"])
    assert versions["orders"] == [1]
    assert versions["plain"] == list(range(1, len(versions["plain"]) + 1))
    used = {one.value["source"]["schema"] for one in told.of(f"{NAME}.{NAME}.plain") if one.value}
    assert used <= set(versions["plain"])
    assert len(versions["plain"]) > 2


def _positions(told: Told, book: Book) -> None:
    """Each checkpoint counts exactly what was written up to it."""
    rows = [0] * (book.transactions + 1)
    for change in book.changes:
        rows[change.number] += 1
    up_to = list(accumulate(rows))
    log = [Checkpoint.model_validate(value) for value in told.service("commit-log")]
    assert [one.place for one in log] == sorted(one.place for one in log)
    found = [(max(0, told.number(one.gtid_set)), one.events) for one in log]
    assert [events for _, events in found] == [up_to[number] for number, _ in found]
    assert found[-1][0] == book.transactions
    beats = [(one["file"], one["pos"]) for one in told.service("heartbeat")]
    # A start by GTID does not know its file before the server says it, so one that was killed soon begins so again.
    known = [place for place in beats if place[0]]
    assert known == sorted(known)
    assert known
