"""Offsets of which a compaction reads no record: those of a transaction that was aborted, which is nothing, and those
that retention removed while compactions were paused, which is a loss that a snapshot mends.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from contract import status
from spark.compaction.compaction import compact
from spark.failures import message_of
from spark.lake.lake import Lake
from stack.kafka import Kafka
from tests.integration.by_hand import pipeline_of
from tests.integration.written import Written, lacking
from tests.spark.lake_by_hand import ids


def test_an_aborted_transaction_is_no_row_and_no_error(spark: SparkSession, kafka: Kafka, tmp_path: Path) -> None:
    """First of all in its topic, behind a change and alone behind all that was read."""
    written = Written(kafka, "aborted")
    pipeline = pipeline_of(tmp_path, kafka, "aborted")
    lake = Lake(spark, pipeline)
    written.aborted("late", 10)
    written.snapshot(spark, lake, "1", 20)
    written.change("early", 30, 7)
    written.aborted("early", 31)
    written.released(40)
    assert compact(spark, pipeline)["changes"] == 1
    written.aborted("early", 50)
    written.aborted("late", 51)
    written.released(60)
    assert compact(spark, pipeline)["changes"] == 0
    written.aborted("late", 70)
    written.change("late", 71, 8)
    written.released(80)
    assert compact(spark, pipeline)["changes"] == 1
    standing = status.read(pipeline)
    assert standing is not None
    assert standing.checkpoint is not None
    assert standing.checkpoint.pos == 80
    assert lacking(pipeline) == []
    assert {table: ids(spark, lake, ("aborted", table)) for table in ("early", "late", "quiet")} == {
        "early": [(1, "a"), (7, "a")],
        "late": [(1, "a"), (8, "a")],
        "quiet": [(1, "a")],
    }


def test_what_retention_removed_in_a_pause_stops_compactions_until_a_snapshot(
    spark: SparkSession, kafka: Kafka, tmp_path: Path
) -> None:
    """The way back that the message tells; what stayed in Kafka is not lost on it, and no change comes twice."""
    written = Written(kafka, "paused")
    pipeline = pipeline_of(tmp_path, kafka, "paused")
    lake = Lake(spark, pipeline)
    written.snapshot(spark, lake, "1", 20)
    for n in range(3):
        written.change("late", 30 + n, 10 + n)
    written.change("early", 35, 10)
    written.released(40)
    assert compact(spark, pipeline)["changes"] == 4
    for n in range(5):
        written.change("late", 50 + n, 20 + n)
    written.change("early", 55, 20)
    written.released(60)
    written.remove("late", 6)
    for _ in range(2):
        with pytest.raises(Exception, match="may have been lost") as stopped:
            compact(spark, pipeline)
        told, checkpoint = message_of(stopped.value, pipeline), Path(lake.checkpoint("changes"))
        assert told.startswith("records were deleted from Kafka before they reached the lake (")
        assert "paused.paused.late-0" in told
        assert f"Move {checkpoint} away" in told
        assert "paused.snapshot" in told
    checkpoint.rename(tmp_path / "away")
    compact(spark, pipeline)
    assert lacking(pipeline) == ["late"]
    assert [one for one, _ in ids(spark, lake, ("paused", "early"))] == [1, 10, 20]
    assert [one for one, _ in ids(spark, lake, ("paused", "late"))] == [1, 10, 11, 12, 23, 24]
    changes = spark.read.format("delta").load(lake.changes)
    assert changes.count() == changes.select("topic", "offset").distinct().count() == 7
    written.snapshot(spark, lake, "2", 100)
    compact(spark, pipeline)
    assert lacking(pipeline) == []
