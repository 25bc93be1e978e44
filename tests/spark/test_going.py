"""Which changes go: by days, none sooner than those before it, and none held back by a day that is to come."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from pyspark.sql import Column, DataFrame, SparkSession

from contract.kept_history import FILE, Kept, KeptHistory
from contract.sequence import SPARK_TYPE
from contract.status import LakeStatus
from spark.errors import LakeError
from spark.history.going import Going, going
from spark.lake.applied import Applied, AppliedSnapshots
from spark.lake.lake import Lake
from spark.mending.rebuilt import Rebuild
from spark.tables.schema import Schemas
from tests.spark.changes_by_hand import ITEMS
from tests.spark.lake_by_hand import NAME, checkpoint

TODAY = date(2026, 6, 15)
ITEM, OTHER = "shop.items", "shop.others"
CUTS = dict.fromkeys((ITEM, OTHER), TODAY - timedelta(5))
YEAR = 365
# Table, place, and how many days ago the source's clock said that it was.
CHANGES = [
    (ITEM, 10, -YEAR),  # a clock that was a year ahead
    (ITEM, 20, 8),
    (ITEM, 30, 2),
    (ITEM, 40, 8),  # it was set back
    (ITEM, 50, 1),
    (OTHER, 25, 2),
    (OTHER, 35, 1),
    (OTHER, 15, 9),
]


def changes(spark: SparkSession, *rows: tuple[str, int, int]) -> DataFrame:
    days = [(table, TODAY - timedelta(ago), (0, 1, pos, 0, 0)) for table, pos, ago in rows]
    made = spark.createDataFrame(days, f"tbl string, day date, _seq {SPARK_TYPE}")
    return made.selectExpr("*", "timestamp(day) AS ts")


def places(changes: DataFrame, which: Column) -> list[int]:
    return sorted(row[0] for row in changes.where(which).select("_seq.pos").collect())


def test_a_change_goes_no_sooner_than_those_that_came_before_it(spark: SparkSession) -> None:
    """Of 40 the clock says that it is old; by it a past behind 30, which stays, would be without it."""
    made = changes(spark, *CHANGES)
    old, found = going(made, CUTS, TODAY, KeptHistory())
    assert places(made, old) == [15, 20]
    assert found == {ITEM: Going(1, 1, (0, 1, 20, 0, 0)), OTHER: Going(1, 1, (0, 1, 15, 0, 0))}


@pytest.mark.parametrize(("ahead", "gone"), [(1, []), (2, [20])])
def test_a_clock_a_day_ahead_is_believed_and_no_more(spark: SparkSession, ahead: int, gone: list[int]) -> None:
    made = changes(spark, (ITEM, 10, -ahead), (ITEM, 20, 8))
    assert places(made, going(made, CUTS, TODAY, KeptHistory())[0]) == gone


def kept(lake: Lake, gone: int) -> Rebuild:
    """Of the table: the snapshot began at 25, and the changes up to `gone` were removed, all of them of days before."""
    facts = {"id": "s", "p0": "", "p1": "", "rows": 1, "applied_at": 0, "floor": [0, 1, 25, -1, -1], "p0_ms": 2_000}
    AppliedSnapshots(lake).note(NAME, Applied.model_validate(facts))
    known = Kept(begins=1_000, removed=1, gone=(0, 1, gone, 0, 0))
    lake.write(lake.at(FILE), KeptHistory(tables={ITEM: known}).model_dump(mode="json"))
    status = LakeStatus(
        pipeline="shop", run=1, written_at=0, seconds=1, checkpoint=checkpoint(100), changes_version=None, tables={}
    )
    return Rebuild(lake.spark, lake, status, Schemas([ITEMS]), NAME)


def test_a_change_behind_the_snapshot_that_went_by_such_a_clock_is_missed(lake: Lake) -> None:
    assert kept(lake, 24).changes() is None, "nothing was landed, and nothing of it is missing"
    told = r"shop\.items: changes behind the snapshot s were removed .*clock went back.*take the rows from MySQL"
    with pytest.raises(LakeError, match=told):
        kept(lake, 26).changes()
