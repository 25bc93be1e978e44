"""What a streamer would write of some tables, written by hand, with what retention takes away of it, and with what a
transaction that is aborted leaves.
"""

from __future__ import annotations

from typing import Any

from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from contract import status
from contract.ddl_record import DdlRecord
from contract.pipeline import Pipeline
from spark.kafka.broker import Broker
from spark.kafka.topic_places import TopicPlace, seen
from spark.lake.lake import Lake
from spark.lake.manifests import Manifest
from stack.kafka import Kafka
from tests import checkpoints
from tests.integration.by_hand import make_topics, send
from tests.spark.changes_by_hand import ITEMS, record
from tests.spark.lake_by_hand import item, staged

TABLES = ("late", "early", "quiet", "whole")


class Written:
    """Pipeline and database have the name."""

    def __init__(self, kafka: Kafka, name: str) -> None:
        self.kafka, self.name = kafka, name
        self.shapes = {table: ITEMS.model_copy(update={"db": name, "table": table}) for table in TABLES}
        topics = [self.topic(table) for table in TABLES]
        make_topics(kafka, *topics, *(f"{name}.{kind}" for kind in ("schemas", "commit-log", "ddl")))
        self.schemas()

    def topic(self, table: str) -> str:
        return f"{self.name}.{self.name}.{table}"

    def schemas(self, *only: str) -> None:
        for table in only or TABLES:
            send(self.kafka, f"{self.name}.schemas", (table.encode(), self.shapes[table].model_dump_json().encode()))

    def released(self, pos: int) -> None:
        value = self.checkpoint(pos).model_dump_json().encode()
        send(self.kafka, f"{self.name}.commit-log", (self.name.encode(), value))

    def checkpoint(self, pos: int) -> Any:
        return checkpoints.checkpoint(pipeline=self.name, pos=pos, gtid_set=f"{checkpoints.SOURCE}:1-{pos}", ts_ms=pos)

    def change(self, table: str, pos: int, id: int) -> None:
        send(self.kafka, self.topic(table), self._record(table, pos, id))

    def _record(self, table: str, pos: int, id: int) -> tuple[bytes, bytes]:
        key, value, *_ = record(0, (0, 1, pos, 0, 0), "c", item(id), None, self.shapes[table], pipeline=self.name)
        return key, value

    def aborted(self, table: str, pos: int) -> None:
        """Changes of a transaction that is not committed: offsets without a record, for who reads what is."""
        producer = Producer({"bootstrap.servers": self.kafka.address, "transactional.id": f"{self.name}.{pos}"})
        producer.init_transactions(30)
        producer.begin_transaction()
        for id in (100, 101):
            producer.produce(self.topic(table), self._record(table, pos, id)[1], self._record(table, pos, id)[0], 0)
        producer.flush(30)
        producer.abort_transaction(30)

    def statement(self, table: str, pos: int, kind: str = "partition") -> None:
        told = DdlRecord(
            db=self.name, table=table, kind=kind, statement=f"{kind} of {table}", seq=(0, 1, pos), ts_ms=pos
        )
        send(self.kafka, f"{self.name}.ddl", (b"key", told.model_dump_json().encode()))

    def remove(self, table: str, below: int) -> None:
        """As retention does."""
        client = AdminClient({"bootstrap.servers": self.kafka.address})
        place = TopicPartition(self.topic(table), 0, below)
        for removed in client.delete_records([place], operation_timeout=20).values():
            removed.result(30)

    def look(self, lake: Lake) -> dict[str, TopicPlace]:
        return seen(lake.pipeline, Broker(lake.pipeline), [(self.name, table) for table in TABLES])

    def snapshot(self, spark: SparkSession, lake: Lake, id: str, pos: int) -> None:
        self.released(pos)
        at, there = self.checkpoint(pos), self.look(lake)
        for table in TABLES:
            facts: dict[str, Any] = {"p0": at, "p1": at.gtid_set, "seen": there, "counts": {f"{self.name}.{table}": 1}}
            manifest = Manifest(id=f"{id}-{table}", pipeline=self.name, tables=[self.shapes[table]], **facts)
            staged(spark, lake, manifest, item(1))


def lacking(pipeline: Pipeline) -> list[str]:
    """The tables of which the status says that they lack records; of the others nothing speaks against them."""
    standing = status.read(pipeline)
    assert standing is not None
    tables = {table.table: table for table in standing.tables.values()}
    for table in tables.values():
        assert (table.snapshot is None) == (table.freshness_ms is None) == bool(table.doubts()), table
    return sorted(name for name, table in tables.items() if "removed from Kafka before" in (table.unread or ""))
