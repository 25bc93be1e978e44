"""A table that somebody else wrote is marked, run after run, until that is settled."""

from __future__ import annotations

from collections.abc import Callable
from shutil import rmtree
from typing import Any

import polars as pl
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from contract import status
from contract.pipeline import Pipeline
from spark.failpoints import hooked
from spark.lake.lake import Lake
from spark.session import OURS
from tests.spark.changes_by_hand import change
from tests.spark.lake_by_hand import AT, NAME, ids, item, land, part, seq, stage

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


def test_what_came_behind_the_first_is_counted(spark: SparkSession, lake: Lake, compact: Compact) -> None:
    stage(spark, lake, "1", 50, item(1), item(2), item(3))
    compact()
    setting = "spark.databricks.delta.commitInfo.userMetadata"
    spark.conf.set(setting, "somebody")
    for id in (1, 2, 3):
        spark.sql(f"DELETE FROM delta.`{lake.table(*NAME)}` WHERE id = {id}")
    spark.conf.set(setting, OURS)
    assert " UTC, and 2 more behind it. A check shows" in compact()["tables"]["shop.items"]["foreign"]


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
        (OLDER + 6, marked, {**EQUAL, "unplaced": True}),
    ):
        told = {"tables": {"shop.items": facts} if facts else {}} | ({"lake_run": run} if run is not None else {})
        lake.write(lake.at("_quality", f"{number}.json"), told)
    assert foreign(compact())
    lake.write(lake.at("_quality", f"{OLDER + 7}.json"), {"tables": {"shop.items": EQUAL}, "lake_run": marked})
    assert not foreign(compact())


@pytest.mark.usefixtures("marked")
def test_by_a_part_that_is_the_whole_table(spark: SparkSession, lake: Lake, compact: Compact) -> None:
    part(spark, lake, "p1", AT, item(1), where="id = 1")
    assert foreign(compact()), "nobody looked at the other rows"
    part(spark, lake, "p2", AT, item(1), item(2))
    assert not foreign(compact())


@pytest.mark.soak
def test_such_a_part_replaces_right_rows_that_have_no_order(spark: SparkSession, lake: Lake, compact: Compact) -> None:
    """Nothing else would: no later change is behind none."""
    stage(spark, lake, "1", 50, item(1), item(2))
    compact()
    rows = pl.read_delta(lake.table(*NAME))
    nobodys = rows.filter(pl.col("id") == 1).with_columns(pl.lit(None).cast(rows.schema["_seq"]).alias("_seq"))
    DeltaTable(lake.table(*NAME)).delete("id = 1")
    write_deltalake(lake.table(*NAME), nobodys, mode="append")
    assert foreign(compact())
    part(spark, lake, "p1", AT, item(1), item(2))
    assert not foreign(compact())
    assert lake.frame(lake.table(*NAME)).where("_seq.pos is null").isEmpty()
    land(spark, lake, change(seq(AT + 5), "u", item(1, "new")))
    compact()
    assert ids(spark, lake) == [(1, "new"), (2, "a")]


def test_such_a_part_replaces_right_rows_whose_order_is_behind_all_changes_and_removes_those_without_a_key(
    spark: SparkSession, lake: Lake, compact: Compact
) -> None:
    """Copied from a lake of a later epoch: a change to come would be before them, and be left out."""
    land(spark, lake, change(seq(50), "c", item(1)), change(seq(51), "c", item(2)))
    compact()
    rows = pl.read_delta(lake.table(*NAME)).filter(pl.col("id") == 1)
    later = rows.with_columns(pl.col("_seq").struct.with_fields(pl.lit(7, pl.Int32).alias("epoch")))
    later = later.cast({"_seq": rows.schema["_seq"]})
    DeltaTable(lake.table(*NAME)).delete("id = 1")
    keyless = rows.with_columns(pl.lit(None, rows.schema["id"]).alias("id"))
    write_deltalake(lake.table(*NAME), pl.concat([later, keyless]), mode="append")
    assert foreign(compact())
    part(spark, lake, "p1", AT, item(1), item(2))
    report = compact()
    assert (report["parts"]["p1"]["rows"], foreign(report)) == ({"changed": 1, "extra": 1}, False)
    land(spark, lake, change(seq(AT + 5), "u", item(1, "new")))
    compact()
    assert ids(spark, lake) == [(1, "new"), (2, "a")]


@pytest.mark.usefixtures("marked")
def test_by_a_snapshot(spark: SparkSession, lake: Lake, compact: Compact) -> None:
    stage(spark, lake, "2", AT, item(1), item(2))
    assert not foreign(compact())
    assert not foreign(compact())


def test_by_a_snapshot_that_has_the_rows_which_somebody_took(spark: SparkSession, lake: Lake, compact: Compact) -> None:
    """The row's change behind P0 was merged before, and comes no more: the table's own rows count for nothing."""
    land(spark, lake, change(seq(AT - 1), "c", item(1)), change(seq(AT + 5), "u", item(1, "new")))
    land(spark, lake, change(seq(AT + 6), "c", item(2)))
    compact()
    stage(spark, lake, "2", AT, item(1))
    DeltaTable(lake.table(*NAME)).delete("id = 1")
    write_deltalake(
        lake.table(*NAME), pl.read_delta(lake.table(*NAME)).with_columns(pl.lit(7).alias("id")), mode="append"
    )
    report = compact()
    assert not foreign(report)
    assert ids(spark, lake) == [(1, "new"), (2, "a")]
    assert status.read(lake.pipeline).tables["shop.items"].changes == 3, "merged again is not one more"  # type: ignore[union-attr]


def test_by_a_snapshot_applied_while_somebody_writes(spark: SparkSession, lake: Lake, compact: Compact) -> None:
    land(spark, lake, change(seq(AT - 1), "c", item(1)), change(seq(AT + 5), "u", item(1, "new")))
    compact()
    stage(spark, lake, "2", AT, item(1))

    def harm(at: str) -> None:
        if at == "run noted":
            DeltaTable(lake.table(*NAME)).delete("id = 1")

    with hooked(harm):
        compact()
    assert ids(spark, lake) == [(1, "new")]


@pytest.mark.soak
def test_a_table_whose_folder_goes_during_a_run_counts_as_not_snapshotted(
    spark: SparkSession, pipeline: Pipeline, lake: Lake, compact: Compact
) -> None:
    stage(spark, lake, "1", 50, item(1), item(2))
    for n in range(3):
        compact()
        land(spark, lake, change(seq(AT + n), "c", item(3 + n)))

    def harm(at: str) -> None:
        if at == "run noted":
            rmtree(lake.table(*NAME))

    with hooked(harm):
        compact()
    for _ in range(2):
        [table] = status.read(pipeline).tables.values()  # type: ignore[union-attr]
        assert (table.snapshot, table.freshness_ms) == (None, None)
        assert "not yet snapshotted" in str(table.unread)
        compact()


@pytest.mark.usefixtures("marked")
def test_a_status_that_is_gone_marks_nothing_anew_and_brings_nothing_back(
    spark: SparkSession, lake: Lake, compact: Compact, capsys: pytest.CaptureFixture[str]
) -> None:
    lake.delete(lake.status)
    assert not foreign(compact())
    assert "the lake's status is gone" in capsys.readouterr().out
    assert ids(spark, lake) == [(2, "a")]
