"""What checks noted does not grow for ever, and what is still open is known since when it was."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract.names import CHECKS, DIFFERENCES
from spark.lake.lake import Lake
from spark.maintenance.maintenance import Maintaining
from spark.proof.differences import (
    CHANGED,
    Difference,
    dated,
    found_last,
    next_run,
    note_checks,
    note_differences,
    unmet_last,
)

ITEMS, LINES = Difference("shop", "items", CHANGED, '{"id":1}'), Difference("shop", "lines", CHANGED, '{"n":1}')
UNMET = {"ok": False, "expectation": "expect_column_values_to_be_unique", "column": "id"}
NOW = datetime.now(UTC)
pytestmark = pytest.mark.usefixtures("maintained")


def check(spark: SparkSession, lake: Lake, days: int, *found: Difference) -> None:
    """One of the tables in which it finds something, so many days ago."""
    run = next_run(spark, lake, NOW - timedelta(days=days))
    known = [one for noted in found_last(spark, lake).values() for one in noted]
    note_differences(spark, lake, run, dated(found, known, run.at))
    names = [f"{one.db}.{one.table}" for one in found]
    facts: dict[str, Any] = {
        "tables": {name: {"equal": False} for name in names},
        "expectations": {"tables": {name: {"evaluations": [UNMET]} for name in names}},
    }
    note_checks(spark, lake, run, facts)


def ages(spark: SparkSession, lake: Lake, name: str) -> set[tuple[str, int]]:
    rows = spark.read.format("delta").load(lake.at(name)).selectExpr("tbl", "unix_seconds(at) AS at").collect()
    return {(row["tbl"], round((NOW.timestamp() - row["at"]) / 86400)) for row in rows}


def test_what_is_old_goes_but_for_the_last_check_of_each_table(spark: SparkSession, lake: Lake) -> None:
    for days in (600, 500):
        check(spark, lake, days, ITEMS, LINES)
    for days in (300, 200, 3, 2):
        check(spark, lake, days, ITEMS)
    before = found_last(spark, lake), unmet_last(spark, lake)
    assert before[0]["shop", "items"][0].since == before[0]["shop", "lines"][0].since == NOW - timedelta(days=600)

    Maintaining(spark, lake).run()
    assert ages(spark, lake, CHECKS) == {("shop.lines", 500), *(("shop.items", days) for days in (300, 200, 3, 2))}
    assert ages(spark, lake, DIFFERENCES) == {("shop.lines", 500), ("shop.items", 3), ("shop.items", 2)}
    assert (found_last(spark, lake), unmet_last(spark, lake)) == before

    versions = [lake.version(lake.at(name)) for name in (CHECKS, DIFFERENCES)]
    Maintaining(spark, lake).run()
    assert [lake.version(lake.at(name)) for name in (CHECKS, DIFFERENCES)] == versions, "there was nothing to do"


def test_a_clock_that_is_ahead_takes_nothing_away(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    for days in (90, 2):
        check(spark, lake, days, ITEMS)
    ahead = SimpleNamespace(time=lambda: (NOW + timedelta(days=1000)).timestamp())
    monkeypatch.setattr("spark.proof.trimmed.time", ahead)
    Maintaining(spark, lake, ["vacuum"]).run()
    assert ages(spark, lake, CHECKS) == ages(spark, lake, DIFFERENCES) == {("shop.items", 90), ("shop.items", 2)}
