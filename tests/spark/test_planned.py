"""A batch that did not end is planned anew where it is larger than it may be by now, and nothing of it is written."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark.lake.lake import Lake
from spark.landing.planned import forget_larger

TOPIC = "shop.shop.items"


def planned(lake: Lake, *ends: tuple[int, int], done: int = 1) -> Path:
    """The checkpoint of a query, its batches' offsets in two partitions; gives the last one's file."""
    folder = Path(lake.checkpoint("changes"))
    for name in ("offsets", "commits"):
        (folder / name).mkdir(parents=True)
    (folder / "metadata").write_text('{"id":"q"}')
    for number, (first, second) in enumerate(ends):
        offsets = json.dumps({TOPIC: {"0": first, "1": second}})
        (folder / "offsets" / str(number)).write_text(f"v1\n{{}}\n{offsets}")
        if number < done:
            (folder / "commits" / str(number)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    return folder / "offsets" / str(len(ends) - 1)


@pytest.mark.parametrize(
    ("most", "stays"), [(1000, False), (5998, True), (6000, True)], ids=["smaller", "rounded up", "as it was"]
)
def test_one_of_more_records_than_may_be_is_forgotten(spark: SparkSession, lake: Lake, most: int, stays: bool) -> None:
    file = planned(lake, (100, 100), (2100, 4100))
    forget_larger(spark, lake, most)
    assert file.exists() == stays


def test_of_those_that_ended_none_is(spark: SparkSession, lake: Lake) -> None:
    file = planned(lake, (100, 100), (2100, 4100), done=2)
    forget_larger(spark, lake, 1000)
    assert file.exists()


@pytest.mark.parametrize("table", ["changes", "letters"])
@pytest.mark.parametrize(("written", "stays"), [(0, False), (1, True)])
def test_one_of_which_something_is_written_stays(
    spark: SparkSession, lake: Lake, table: str, written: int, stays: bool
) -> None:
    file = planned(lake, (100, 100), (2100, 4100))
    writer = spark.range(1).write.format("delta").option("txnAppId", f"headrace-{table}-q")
    path = lake.changes if table == "changes" else lake.at("_dead_letters")
    writer.option("txnVersion", written).save(path)
    forget_larger(spark, lake, 1000)
    assert file.exists() == stays
