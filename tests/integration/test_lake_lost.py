"""Records that Kafka removed before the lake read them: a table that lacks some says so until a snapshot behind them
has brought its rows, and the others stay clear. What the streamer would write is written by hand.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient
from pyspark.sql import SparkSession

from contract import status
from contract.ddl_record import DdlRecord
from contract.pipeline import Pipeline
from spark.compaction.compaction import compact
from spark.errors import LakeError
from spark.failpoints import hooked
from spark.kafka.broker import Broker
from spark.kafka.topic_places import TopicPlace, seen
from spark.lake.lake import Lake
from spark.lake.manifests import Manifest
from stack.kafka import Kafka
from tests import checkpoints
from tests.integration.by_hand import make_topics, pipeline_of, send
from tests.integration.test_lake_topics import made_again
from tests.spark.changes_by_hand import ITEMS, record
from tests.spark.lake_by_hand import item, staged

NAME = "removed"
TABLES = ("late", "early", "quiet", "whole")
SCHEMAS = {table: ITEMS.model_copy(update={"db": NAME, "table": table}) for table in TABLES}


class KilledError(Exception):
    pass


def kill_at(point: str) -> Any:
    def hook(reached: str) -> None:
        if reached == point:
            raise KilledError

    return hooked(hook)


class Written:
    """What the streamer writes."""

    def __init__(self, kafka: Kafka) -> None:
        self.kafka = kafka
        topics = [f"{NAME}.{NAME}.{table}" for table in TABLES]
        make_topics(kafka, *topics, *(f"{NAME}.{kind}" for kind in ("schemas", "commit-log", "ddl")))
        self.schemas()

    def schemas(self, *only: str) -> None:
        for table in only or TABLES:
            send(self.kafka, f"{NAME}.schemas", (table.encode(), SCHEMAS[table].model_dump_json().encode()))

    def released(self, pos: int) -> None:
        value = self.checkpoint(pos).model_dump_json().encode()
        send(self.kafka, f"{NAME}.commit-log", (NAME.encode(), value))

    def checkpoint(self, pos: int) -> Any:
        return checkpoints.checkpoint(pipeline=NAME, pos=pos, gtid_set=f"{checkpoints.SOURCE}:1-{pos}", ts_ms=pos)

    def change(self, table: str, pos: int, id: int) -> None:
        key, value, *_ = record(0, (0, 1, pos, 0, 0), "c", item(id), None, SCHEMAS[table], pipeline=NAME)
        send(self.kafka, f"{NAME}.{NAME}.{table}", (key, value))

    def statement(self, table: str, pos: int, kind: str = "partition") -> None:
        told = DdlRecord(db=NAME, table=table, kind=kind, statement=f"{kind} of {table}", seq=(0, 1, pos), ts_ms=pos)
        send(self.kafka, f"{NAME}.ddl", (b"key", told.model_dump_json().encode()))

    def remove(self, table: str, below: int) -> None:
        """As retention does."""
        client = AdminClient({"bootstrap.servers": self.kafka.address})
        place = TopicPartition(f"{NAME}.{NAME}.{table}", 0, below)
        for removed in client.delete_records([place], operation_timeout=20).values():
            removed.result(30)

    def look(self, lake: Lake) -> dict[str, TopicPlace]:
        return seen(lake.pipeline, Broker(lake.pipeline), [(NAME, table) for table in TABLES])

    def snapshot(self, spark: SparkSession, lake: Lake, id: str, pos: int) -> None:
        self.released(pos)
        at, there = self.checkpoint(pos), self.look(lake)
        for table in TABLES:
            facts: dict[str, Any] = {"p0": at, "p1": at.gtid_set, "seen": there, "counts": {f"{NAME}.{table}": 1}}
            manifest = Manifest(id=f"{id}-{table}", pipeline=NAME, tables=[SCHEMAS[table]], **facts)
            staged(spark, lake, manifest, item(1))


def lacking(pipeline: Pipeline) -> list[str]:
    """The tables of which the status says that they lack records; of the others nothing speaks against them."""
    standing = status.read(pipeline)
    assert standing is not None
    tables = {table.table: table for table in standing.tables.values()}
    for table in tables.values():
        assert (table.snapshot is None) == (table.freshness_ms is None) == bool(table.doubts()), table
    return sorted(name for name, table in tables.items() if "removed from Kafka before" in (table.unread or ""))


@pytest.mark.soak
def test_tables_that_lack_what_kafka_removed_say_so_until_a_snapshot(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    written = Written(kafka)
    pipeline = pipeline_of(tmp_path, kafka, NAME)
    lake = Lake(spark, pipeline)
    for n in range(3):
        written.change("early", 10 + n, n)
    written.remove("early", 3)  # before the snapshot looks, which has them
    written.change("quiet", 20, 1)
    written.snapshot(spark, lake, "1", 60)
    written.remove("quiet", 1)  # since, and the snapshot has it all the same
    for n in range(3):
        written.change("late", 70 + n, 7 + n)
    written.change("early", 75, 7)
    written.remove("late", 2)
    written.statement("nothing", 76, "create")
    written.released(90)
    for point in ("loss noted", "landed"):
        with kill_at(point), pytest.raises(KilledError):
            compact(spark, pipeline)
    compact(spark, pipeline)
    assert lacking(pipeline) == ["late"]

    # The statement that was read has gone with its topic, and others have its offset.
    made_again(kafka, f"{NAME}.ddl", 1)
    written.statement("whole", 91)
    written.statement("nothing", 92, "create")
    written.released(95)
    for point in ("loss noted", "statements begun anew"):
        with kill_at(point), pytest.raises(KilledError):
            compact(spark, pipeline)
    told = compact(spark, pipeline)["tables"]
    assert lacking(pipeline) == sorted(TABLES)
    assert f"{NAME}.ddl" in told[f"{NAME}.early"]["unread"]
    assert "partition of whole" in told[f"{NAME}.whole"]["stale"]
    written.snapshot(spark, lake, "2", 100)
    compact(spark, pipeline)
    assert lacking(pipeline) == []

    # What was read of a topic is gone with it, and so is what was not; the way back, without its snapshot.
    made_again(kafka, f"{NAME}.{NAME}.early", 1)
    for n in range(9):
        written.change("early", 120 + n, 20 + n)
    written.released(130)
    with pytest.raises(LakeError, match="was deleted and made again"):
        compact(spark, pipeline)
    Path(lake.checkpoint("changes")).rename(tmp_path / "away")
    compact(spark, pipeline)
    assert lacking(pipeline) == ["early"]

    made_again(kafka, f"{NAME}.schemas", 1)
    written.schemas("late", "quiet", "whole")
    with pytest.raises(LakeError, match=rf"{NAME}\.schemas lacks version 1 of {NAME}\.early.*Bring its records back"):
        compact(spark, pipeline)
    written.schemas("early")
    compact(spark, pipeline)
