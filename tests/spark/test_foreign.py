"""A table that somebody else wrote is marked, run after run, until that is settled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract import status
from contract.pipeline import Pipeline
from spark.lake import Lake
from spark.session import OURS
from tests.spark.lake_by_hand import AT, NAME, item, part, stage

Compact = Callable[[], dict[str, Any]]
OLDER = 4_000_000_000_000  # a check's number: those since count on from it, whatever the clock says
EQUAL = {"equal": True, "chunks": 3, "chunks_compared": 3}


@pytest.fixture
def marked(spark: SparkSession, pipeline: Pipeline, lake: Lake, compact: Compact) -> int:
    """The run that found it. Its clock was ahead then."""
    stage(spark, lake, "1", 50, item(1), item(2))
    compact()
    lake.write(lake.at("_quality", f"{OLDER}.json"), {})
    setting = "spark.databricks.delta.commitInfo.userMetadata"
    spark.conf.set(setting, "somebody")
    spark.sql(f"DELETE FROM delta.`{lake.table(*NAME)}` WHERE id = 1")
    spark.conf.set(setting, OURS)
    for _ in range(2):
        assert "DELETE as version" in compact()["tables"]["shop.items"]["foreign"]
    [table] = status.read(pipeline).tables.values()  # type: ignore[union-attr]
    assert table.foreign is not None
    assert table.doubts() == [table.foreign.reason]
    return table.foreign.run


def foreign(report: dict[str, Any]) -> bool:
    return report["tables"]["shop.items"]["foreign"] is not None


def test_by_a_check_of_the_lake_since_that_finds_all_rows_equal(lake: Lake, compact: Compact, marked: int) -> None:
    for number, run, facts in (
        (OLDER, marked + 9, EQUAL),  # the count of runs began anew since, with the status
        (OLDER + 1, marked - 1, EQUAL),
        (OLDER + 2, marked, {**EQUAL, "chunks_compared": 2}),
        (OLDER + 3, marked, {**EQUAL, "equal": False}),
        (OLDER + 4, marked, None),
        (OLDER + 5, None, EQUAL),
    ):
        told = {"tables": {"shop.items": facts} if facts else {}} | ({"lake_run": run} if run is not None else {})
        lake.write(lake.at("_quality", f"{number}.json"), told)
    assert foreign(compact())
    lake.write(lake.at("_quality", f"{OLDER + 6}.json"), {"tables": {"shop.items": EQUAL}, "lake_run": marked})
    assert not foreign(compact())


@pytest.mark.usefixtures("marked")
def test_by_a_part_that_is_the_whole_table(spark: SparkSession, lake: Lake, compact: Compact) -> None:
    part(spark, lake, "p1", AT, item(1), where="id = 1")
    assert foreign(compact()), "nobody looked at the other rows"
    part(spark, lake, "p2", AT, item(1), item(2))
    assert not foreign(compact())


@pytest.mark.usefixtures("marked")
def test_by_a_snapshot(spark: SparkSession, lake: Lake, compact: Compact) -> None:
    stage(spark, lake, "2", AT, item(1), item(2))
    assert not foreign(compact())
    assert not foreign(compact())
