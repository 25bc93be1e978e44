"""A row that was erased stays away where its table is made anew of files of before, which no vacuum has removed yet."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from contract.pipeline import Pipeline
from contract.status import parse
from spark.compaction import compaction
from spark.jobs import backfill as job
from spark.jobs.backfill import backfill
from spark.lake.lake import Lake
from tests.spark.changes_by_hand import ITEMS
from tests.spark.changes_by_hand import record as kafka_record
from tests.spark.lake_by_hand import checkpoint, stage
from tests.spark.test_erasing import erasing, ids, item, land, stats

__all__ = ["stats"]


class Broker:
    def __init__(self, pipeline: Pipeline) -> None:
        self.schemas = lambda: [ITEMS]
        self.checkpoint = lambda: checkpoint(1000)


@pytest.mark.parametrize("again", [False, pytest.param(True, marks=pytest.mark.soak)], ids=["gone", "made again"])
def test_an_erased_row_does_not_come_back_by_a_backfill(
    stats: None, spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    """Its deletion is erased too, so that the changes alone would leave what the snapshot had read."""
    monkeypatch.setattr(job, "Broker", Broker)
    stage(spark, lake, "1", 5, item(1), item(2), item(3))
    land(spark, lake, kafka_record(0, (0, 1, 11, 0, 0), "u", item(2, "b"), item(2)))
    compaction.compact(spark, lake.pipeline)
    land(spark, lake, kafka_record(1, (0, 1, 14, 0, 0), "d", None, item(1)))
    compaction.compact(spark, lake.pipeline)
    made = erasing(spark, lake, hours=168)
    made.erasures.end(made.run())
    if again:
        land(spark, lake, kafka_record(2, (0, 1, 950, 0, 0), "c", item(1, "new"), None))
        compaction.compact(spark, lake.pipeline)
    before = ids(spark, lake)
    assert before == ([1, 2, 3] if again else [2, 3])
    [id] = backfill(spark, lake.pipeline, ["shop.items"])["parts"]
    assert compaction.compact(spark, lake.pipeline)["parts"][id]["rows"] == {}
    assert ids(spark, lake) == before
    status = parse(Path(lake.status).read_text())
    assert status.tables["shop.items"].rows == len(before)
