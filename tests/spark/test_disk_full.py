"""A disk that is full: the job's message says so, no table is stopped for it, and the run behind it is right."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from contract import status
from contract.names import STAGING
from contract.pipeline import Pipeline
from contract.schema import TableSchema
from spark.failures import message_of
from spark.lake.lake import Lake
from spark.lake.stopped import StoppedTables
from spark.merging import made_anew, tables
from spark.snapshot import table_read
from spark.snapshot.places import Places
from spark.snapshot.snapshot import Staging
from spark.snapshot.staged import StagedRows
from spark.source.source import Source
from spark.tables.rows import parsed
from tests.spark.changes_by_hand import ITEMS, change, compact_json
from tests.spark.lake_by_hand import AT, checkpoint, executed, ids, item, land, seq, stage

Compact = Callable[[], dict[str, Any]]
FULL = "java.io.IOException: No space left on device"


def full(*_: Any) -> None:
    raise OSError(FULL)


def message(pipeline: Pipeline, work: Callable[[], object]) -> str:
    with pytest.raises(OSError, match="No space left") as caught:
        work()
    return message_of(caught.value, pipeline)


def test_a_merge_stops_no_table(
    spark: SparkSession, pipeline: Pipeline, lake: Lake, compact: Compact, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage(spark, lake, "1", AT, item(1))
    compact()
    land(spark, lake, change(seq(AT + 1), "u", item(1, "new")), change(seq(AT + 2), "c", item(2)))
    with monkeypatch.context() as while_full:
        while_full.setattr(tables, "merge", full)
        assert message(pipeline, compact).startswith(f"the disk is full: free some space under {pipeline.lake.place} ")
    assert StoppedTables(lake).tables == {}
    facts = compact()["tables"]["shop.items"]
    assert (facts["stopped"], facts["changes"]) == (None, 2)
    assert ids(spark, lake) == [(1, "new"), (2, "a")]


def test_a_hand_off_keeps_what_was_staged(
    spark: SparkSession, pipeline: Pipeline, lake: Lake, compact: Compact, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the commit that takes the table's newer rows into the staged ones, which are to be the table."""
    land(spark, lake, change(seq(AT + 1), "c", item(7)))
    compact()
    manifest = stage(spark, lake, "1", AT, item(1))
    with monkeypatch.context() as while_full:
        while_full.setattr(made_anew, "_take_in", full)
        assert message(pipeline, compact).startswith("the disk is full")
    assert StoppedTables(lake).tables == {}
    assert lake.exists(manifest.folder(lake))
    facts = compact()["tables"]["shop.items"]
    assert (facts["stopped"], facts["snapshot"]) == (None, True)
    assert ids(spark, lake) == [(1, "a"), (7, "a")]
    told = status.read(pipeline)
    assert told is not None
    assert told.tables["shop.items"].rows == 2


class Server:
    """A source of one table, whose rows come in two groups of chunks."""

    replica = None

    def __init__(self, pipeline: Pipeline, group: int) -> None:
        self.pipeline, self.asked, self.most = pipeline, 0, group + 1

    def awake(self) -> None: ...

    def wait_for(self, *_: Any) -> None: ...

    def executed(self) -> str:
        return executed(AT)

    def schema(self, db: str, table: str) -> TableSchema:
        return ITEMS

    def made(self, db: str, table: str) -> str:
        return "2026-01-01 00:00:00"

    def about(self, db: str, table: str) -> int:
        return 3

    @contextmanager
    def again(self) -> Iterator[Server]:
        self.asked = 0
        yield self

    def row(self, sql: str) -> tuple[str] | None:
        """The next boundary; none behind the first group's."""
        if "statistics" in sql:
            return ("A",)
        self.asked += 1
        return (str(self.asked),) if self.asked < self.most else None


def test_a_snapshot_leaves_the_space_to_compaction(
    spark: SparkSession, pipeline: Pipeline, lake: Lake, compact: Compact, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it had read by then is of no use to anybody while the disk is full."""

    def wires(spark: SparkSession, pipeline: Pipeline, schema: TableSchema, wanted: list[str]) -> Any:
        rows = (item(1), item(2)) if len(wanted) > 1 else (item(3),)
        texts = spark.createDataFrame([(compact_json(row),) for row in rows], "after string")
        return texts.withColumn("_wire", parsed("after", schema.columns))

    def filling(staged: StagedRows, *given: Any) -> Any:
        if appended:
            full()
        appended.append(given)
        return append(staged, *given)

    monkeypatch.setattr(table_read, "wires_of", wires)
    append, appended = StagedRows.append, list[Any]()

    def snapshot() -> dict[str, int]:
        group = pipeline.snapshot.parallelism * 8
        source = cast(Source, Server(pipeline, group))
        places = Places(source, checkpoint(AT), lambda: checkpoint(AT))
        return Staging(spark, pipeline, lake, source, places).run([("shop", "items")], named=True).counts

    with monkeypatch.context() as while_full:
        while_full.setattr(StagedRows, "append", filling)
        assert message(pipeline, snapshot).startswith("the disk is full")
    assert len(appended) == 1
    assert lake.list(lake.at(STAGING)) == []
    assert snapshot() == {"shop.items": 3}
    assert compact()["tables"]["shop.items"]["snapshot"] is True
    assert ids(spark, lake) == [(1, "a"), (2, "a"), (3, "a")]
