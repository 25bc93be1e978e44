"""A lake that stood still for longer than Delta keeps the log of a table."""

from __future__ import annotations

import os
import time

import pytest
from delta.tables import DeltaTable
from pyspark.sql import DataFrame, SparkSession

from spark.failpoints import hooked
from spark.lake.lake import UNFINISHED, Lake
from spark.merging.beginning import FILE
from spark.merging.tables import Merging
from tests.spark.changes_by_hand import change
from tests.spark.lake_by_hand import AT, NAME, ids, item, land, seq, stage
from tests.spark.test_foreign import Compact

INTERVAL = 10  # commits from one checkpoint of Delta's to the next
WEEKS = 14 * 24 * 3600  # longer than the log of a lake's table is kept


def aged(lake: Lake) -> str:
    """The log of `_changes`, whose commits are of two weeks ago."""
    log, long_ago = f"{lake.changes}/_delta_log", time.time() - WEEKS
    for name in os.listdir(log):
        os.utime(f"{log}/{name}", (long_ago, long_ago))
    lake.forget_logs()
    return log


@pytest.mark.parametrize("batches", [pytest.param(INTERVAL, marks=pytest.mark.soak), 1])
@pytest.mark.soak
def test_what_comes_then_is_merged(
    batches: int, spark: SparkSession, lake: Lake, compact: Compact, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage(spark, lake, "1", AT, item(1))
    for n in range(INTERVAL):
        land(spark, lake, change(seq(200 + n), "c", item(10 + n)))
        if n >= INTERVAL - batches:
            compact()
    log = aged(lake)
    land(spark, lake, change(seq(300), "u", item(1, "late")))  # the commit that Delta cleans its log behind
    counts, merge_all = list[int](), Merging._merge_all

    def counted(merging: Merging, changes: DataFrame) -> None:
        counts.append(changes.count())
        merge_all(merging, changes)

    monkeypatch.setattr(Merging, "_merge_all", counted)
    for step in ("merge's beginning noted", "merge begun anew", "merged", "merge's beginning forgotten"):

        def crash(at: str, step: str = step) -> None:
            if at == step:
                raise InterruptedError(step)

        with hooked(crash), pytest.raises(InterruptedError):
            compact()
    compact()
    assert not os.path.exists(f"{log}/{INTERVAL - 1:020d}.json"), "what Delta cleaned is what the last batch had"
    assert (1, "late") in ids(spark, lake)
    land(spark, lake, change(seq(301), "c", item(2)))
    compact()
    assert (2, "a") in ids(spark, lake)
    assert set(counts) == {1}, "what was merged before is not read again"


def test_what_a_run_had_landed_that_died_before_it_merged_is_not_lost(
    spark: SparkSession, lake: Lake, compact: Compact
) -> None:
    """Delta has its rows by then, and no commit that says that they are new."""
    stage(spark, lake, "1", AT, item(1))
    for n in range(INTERVAL - 1):
        land(spark, lake, change(seq(200 + n), "c", item(10 + n)))
        if n >= INTERVAL - 3:
            compact()
    land(spark, lake, change(seq(250), "u", item(10, "died")))
    log = aged(lake)
    land(spark, lake, change(seq(300), "u", item(1, "late")))
    assert not os.path.exists(f"{log}/{INTERVAL - 1:020d}.json"), "else this test tells nothing"
    compact()
    merged = [(1, "late"), (10, "died"), *((10 + n, "a") for n in range(1, INTERVAL - 1))]
    assert ids(spark, lake) == merged
    land(spark, lake, change(seq(301), "d", item(11)))
    compact()
    assert ids(spark, lake) == [row for row in merged if row[0] != 11]


def test_a_merge_that_begins_behind_all_there_is_merges_nothing_again(
    spark: SparkSession, lake: Lake, compact: Compact
) -> None:
    """Of a run that died once it had noted the beginning, and had landed nothing: a row that a repair removed would
    come back by the change of before."""
    stage(spark, lake, "1", AT, item(1))
    land(spark, lake, change(seq(AT + 5), "c", item(10)))
    compact()
    DeltaTable.forPath(spark, lake.table(*NAME)).delete("id = 10")
    lake.write(lake.at(FILE), {"version": (lake.version(lake.changes) or 0) + 1})
    lake.write(lake.at(UNFINISHED), {"began": 0})
    compact()
    assert ids(spark, lake) == [(1, "a")]
    land(spark, lake, change(seq(AT + 6), "c", item(2)))
    compact()
    assert ids(spark, lake) == [(1, "a"), (2, "a")]
