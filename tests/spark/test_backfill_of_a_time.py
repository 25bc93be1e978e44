"""A backfill of the rows that changed in a time: in which the table had another primary key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract.pipeline import Pipeline
from contract.sequence import Sequence
from spark.compaction import compaction
from spark.errors import LakeError
from spark.jobs import backfill as job
from spark.jobs.backfill import backfill
from spark.lake.lake import Lake
from tests.spark.changes_by_hand import ITEMS, change
from tests.spark.lake_by_hand import AT, ids, item, land, seq, stage
from tests.spark.test_repair import damage

ID, NAME, PRICE = ITEMS.columns
OTHER = ITEMS.model_copy(
    update={
        "version": 2, "key": ("name",), "columns": (ID, NAME.model_copy(update={"nullable": False}), PRICE),
        "since": Sequence(0, 1, 40),
    }
)  # fmt: skip


@pytest.mark.soak
def test_a_time_in_which_the_table_had_another_key_is_refused(
    spark: SparkSession,
    pipeline: Pipeline,
    lake: Lake,
    compact: Callable[[], dict[str, Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Broker(compaction.Broker):
        def __init__(self, pipeline: Pipeline) -> None:
            super().__init__(pipeline)
            self.schemas = lambda: [ITEMS, OTHER]

    monkeypatch.setattr(compaction, "Broker", Broker)
    monkeypatch.setattr(job, "Broker", Broker)
    before = list(change(seq(7), "c", item(9)))
    before[-1] = before[-1].replace(year=2025)
    land(spark, lake, tuple(before), change(seq(AT), "u", item(3, "b"), OTHER))
    stage(spark, lake, "1", 50, item(1), item(2, "b"), of=OTHER)
    compact()
    with pytest.raises(LakeError, match=r"begins anew 2026-01-01 00:00:00 UTC .*Nothing was written: choose a later"):
        backfill(spark, pipeline, ["shop.items"], since="2025-01-01T00:00:00Z")
    assert lake.list(lake.at("_parts")) == []
    damage(spark, lake, (1, "a"), (7, "b"))
    backfill(spark, pipeline, ["shop.items"], since="2026-01-01T00:00:00Z")
    compact()
    assert ids(spark, lake) == [(1, "a"), (3, "b")]
