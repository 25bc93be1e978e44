"""Audit: a backfill of a time in which the table had another primary key."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract.pipeline import Pipeline
from spark.compaction import compaction
from spark.errors import LakeError
from spark.failures import message_of
from spark.jobs import backfill as job
from spark.jobs.backfill import backfill
from spark.lake.lake import Lake
from tests.spark.changes_by_hand import ITEMS, change
from tests.spark.lake_by_hand import AT, ids, item, land, seq, stage
from tests.spark.test_repair import damage

Compact = Callable[[], dict[str, Any]]
COLUMNS = tuple(
    column.model_copy(update={"nullable": False}) if column.name == "name" else column for column in ITEMS.columns
)
OTHER = ITEMS.model_copy(update={"version": 2, "key": ("name",), "columns": COLUMNS})


@pytest.mark.parametrize("after", [OTHER], ids=["other"])
def test_a_time_in_which_the_table_had_another_key(
    spark: SparkSession, pipeline: Pipeline, lake: Lake, compact: Compact, monkeypatch: pytest.MonkeyPatch, after: Any
) -> None:
    class Broker(compaction.Broker):
        def __init__(self, pipeline: Pipeline) -> None:
            super().__init__(pipeline)
            self.schemas = lambda: [ITEMS, after]

    monkeypatch.setattr(compaction, "Broker", Broker)
    monkeypatch.setattr(job, "Broker", Broker)
    land(spark, lake, change(seq(7), "c", item(9)))  # by the key of before
    stage(spark, lake, "1", 50, item(1), item(2, "b"), of=after)
    land(spark, lake, change(seq(AT), "u", {"id": 3, "name": "b", "price": None}, after))
    compact()
    assert ids(spark, lake) == [(1, "a"), (3, "b")]
    damage(spark, lake, (7, "b"))
    try:
        report = backfill(spark, pipeline, ["shop.items"], since="2026-01-01T00:00:00Z")
    except LakeError as error:
        print("said:", error)
        return
    except Exception as error:
        pytest.fail(f"the job says: {message_of(error, pipeline)}")
    facts = compact()
    print(report, facts["parts"])
    assert ids(spark, lake) == [(1, "a"), (3, "b")]


def test_a_time_before_the_historys_beginning_is_refused(
    spark: SparkSession, pipeline: Pipeline, lake: Lake, compact: Compact, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As docs/operations.md says. The lake's first change is of 2026."""

    class Broker(compaction.Broker):
        def __init__(self, pipeline: Pipeline) -> None:
            super().__init__(pipeline)
            self.schemas = lambda: [ITEMS]

    monkeypatch.setattr(job, "Broker", Broker)
    stage(spark, lake, "1", 50, item(1), item(2))
    land(spark, lake, change(seq(AT), "u", item(2, "b")))
    compact()
    with pytest.raises(LakeError, match="begins"):
        backfill(spark, pipeline, ["shop.items"], since="2020-01-01T00:00:00Z")
