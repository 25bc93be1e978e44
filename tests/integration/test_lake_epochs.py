"""What the streamer's checkpoints and epochs mean to the lake, with Kafka's records made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pyspark.sql import SparkSession

from contract import status
from contract.pipeline import Tables
from spark.applied import Applied, AppliedSnapshots
from spark.compaction import compact
from spark.lake import Lake
from stack.kafka import Kafka
from tests import checkpoints
from tests.integration.by_hand import make_topics, pipeline_of, send
from tests.spark.changes_by_hand import ITEMS, record
from tests.spark.sessions import local_session

NAME = "newepoch"
TABLE = ITEMS.model_copy(update={"db": NAME})
ROWS = [{"id": 1, "name": f"v{n}", "price": "1.00"} for n in range(4)]


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    return local_session()


def change(epoch: int, n: int) -> tuple[bytes, bytes]:
    """Transaction n: an insert, updates, and in the end a delete."""
    before, after = ROWS[n - 1] if n > 1 else None, ROWS[n] if n < len(ROWS) else None
    op = "c" if before is None else "d" if after is None else "u"
    key, value, *_ = record(0, (epoch, 9 - epoch, n, 0, 0), op, after, before, TABLE, pipeline=NAME)
    return key, value


def test_what_comes_again_moves_no_row_back(spark: SparkSession, kafka: Kafka, tmp_path: Path) -> None:
    """Pitfall "Duplicates after a crash": the streamer was killed behind its last checkpoint, and went on from another
    server. Neither does a run in the middle of it see an older row, nor has history a change twice."""
    pipeline, topic, schemas = pipeline_of(tmp_path, kafka, NAME), f"{NAME}.{NAME}.items", f"{NAME}.schemas"
    make_topics(kafka, topic, schemas)
    send(kafka, schemas, (b"1", TABLE.model_dump_json().encode()))

    def lake() -> tuple[list[Any], list[Any], int]:
        """The rows' names, the history's, and how many changes the status tells of."""
        told = compact(spark, pipeline, [])["tables"][f"{NAME}.items"]
        root = tmp_path / "lake" / NAME
        history = pl.scan_delta(str(root / "_changes")).select("gtid", "_seq").collect().rows()
        rows = pl.scan_delta(str(root / NAME / "items")).select("name").collect().rows()
        return [name for (name,) in rows], sorted((gtid, seq["epoch"]) for gtid, seq in history), told["changes"]

    send(kafka, topic, *(change(0, n) for n in (1, 2, 3)))
    first = [("u:1", 0), ("u:2", 0), ("u:3", 0)]
    assert lake() == (["v3"], first, 3)
    send(kafka, topic, change(1, 2))
    assert lake() == (["v3"], first, 0)
    send(kafka, topic, change(1, 3), change(1, 4))
    assert lake() == ([], [*first, ("u:4", 1)], 1)


def test_a_table_that_was_excluded_for_a_time_counts_as_not_snapshotted(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    pipeline = pipeline_of(tmp_path, kafka, "regained")
    make_topics(kafka, "regained.commit-log")
    applied = AppliedSnapshots(Lake(spark, pipeline))
    facts = {"p0": "", "p1": "", "rows": 0, "applied_at": 1}
    for table in ("kept", "left"):
        applied.note(("regained", table), Applied(id="1", floor=[0, 1, 50, -1, -1], **facts))
    both = Tables(include=("regained.*",))
    checkpoint = checkpoints.checkpoint(pipeline="regained", pos=20, ts_ms=1_700_000_000_000, tables=both)

    def at(pos: int, tables: Tables) -> dict[str, tuple[bool, bool]]:
        """A run, when the streamer has come to a place from which it follows these tables: which have a snapshot, and
        are complete up to some time."""
        nonlocal checkpoint
        checkpoint = checkpoint.model_copy(update={"pos": pos}).following(tables)
        send(kafka, "regained.commit-log", (b"regained", checkpoint.model_dump_json().encode()))
        compact(spark, pipeline, [])
        found = status.read(pipeline)
        assert found is not None
        return {t.table: (t.snapshot is not None, t.freshness_ms is not None) for t in found.tables.values()}

    assert at(60, both) == {"kept": (True, True), "left": (True, True)}
    checkpoint = checkpoint.model_copy(update={"pos": 70}).following(Tables(include=("regained.kept",)))
    assert at(80, both) == {"kept": (True, True), "left": (False, False)}
    checkpoint = checkpoint.model_copy(update={"earlier": ()})  # it keeps no more than the last lists
    assert at(90, both) == {"kept": (True, True), "left": (False, False)}
    AppliedSnapshots(Lake(spark, pipeline)).note(
        ("regained", "left"), Applied(id="2", floor=[0, 1, 90, -1, -1], **facts)
    )
    assert at(99, both) == {"kept": (True, True), "left": (True, True)}
