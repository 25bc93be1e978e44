"""What checks leave in the lake does not grow for ever, and who reads it misses nothing."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from contract.names import CHECKS, DIFFERENCES, QUALITY
from spark.lake.lake import Lake
from spark.maintenance.maintenance import Maintaining
from spark.proof import reports
from spark.proof.differences import CHANGED, Difference, dated, latest, next_run, note_checks, note_differences
from tests.spark.watched_files import Watched

ONE = Difference("shop", "items", CHANGED, '{"id":1}', ("name",))
BESIDE = ("unfinished.json", "last.json", "alerts.jsonl")
pytestmark = pytest.mark.usefixtures("maintained")


def test_the_tables_of_checks_are_tidied_and_tell_the_same(spark: SparkSession, lake: Lake) -> None:
    few = lake.pipeline.maintenance.model_copy(update={"small_files": 2})
    lake.pipeline = lake.pipeline.model_copy(update={"maintenance": few})
    for _ in range(2):
        run = next_run(spark, lake, datetime.now(UTC))
        note_differences(spark, lake, run, dated([ONE], (), run.at))
        note_checks(spark, lake, run, {"tables": {"shop.items": {"equal": False}}})
    before = latest(spark, lake, "shop", "items")
    report = Maintaining(spark, lake).run()
    told = {name: (facts["files"], facts["files_after"]) for name, facts in report["tables"].items()}
    assert told == {CHECKS: (2, 1), DIFFERENCES: (2, 1)}
    assert latest(spark, lake, "shop", "items") == before != []


def test_the_newest_reports_are_kept_and_what_is_beside_them(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reports, "KEPT", 3)
    for name in BESIDE:
        lake.write(lake.at(QUALITY, name), {})
    for number in (999, 1000, 1001, 1002, 1003):
        lake.write(lake.at(QUALITY, f"{number}.json"), {})
    Maintaining(spark, lake, ["optimize"]).run()
    assert len(reports.numbers(lake)) == 5
    Maintaining(spark, lake, ["vacuum"]).run()
    assert reports.numbers(lake) == [1001, 1002, 1003]
    assert {*BESIDE} <= {path.name for path in Path(lake.at(QUALITY)).iterdir()}
    reports.write_report(lake, datetime.fromtimestamp(0.5, UTC), {})
    assert reports.numbers(lake)[-1] == 1004
    assert reports.remove_old(lake) == 1


def test_fewer_than_are_kept_all_stay(lake: Lake) -> None:
    for number in (1, 2):
        lake.write(lake.at(QUALITY, f"{number}.json"), {})
    assert reports.remove_old(lake) == 0
    assert reports.numbers(lake) == [1, 2]


def test_the_folder_of_the_reports_is_listed_once_for_all_that_go(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reports, "KEPT", 3)
    lake.root = f"file://{lake.root}"  # as a lake that is in no folder has it
    for number in range(10):
        lake.write(lake.at(QUALITY, f"{number}.json"), {})
    lake._files = files = Watched(lake._files)
    assert reports.remove_old(lake) == 7
    assert files.listed == 1
    assert reports.numbers(lake) == [7, 8, 9]
