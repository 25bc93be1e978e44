"""A stopped table whose changes take long to be tried: not in each run, but at once where something was mended."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from contract import status
from contract.pipeline import Pipeline
from contract.schema import Unfit
from quality.summary import lines
from spark.compaction import compaction
from spark.failpoints import hooked
from spark.job import JobFailedError
from spark.lake.lake import Lake
from spark.lake.stopped import StoppedTables
from spark.merging import tables
from spark.merging.table_batches import Batch
from spark.merging.tables import Merging
from spark.tables.schema import Schemas
from tests.spark.changes_by_hand import ITEMS, change
from tests.spark.lake_by_hand import NAME, ids, item, land, seq, unwatched
from tests.spark.test_unrepresentable import PEOPLE, lake_of, merging, person

__all__ = ["lake_of"]  # a fixture
BEGAN = 1_800_000_000.0
NEWER = ITEMS.model_copy(update={"version": 9})


class Clock:
    """`takes`: seconds that each scan of waiting changes takes by it; `scans`: how many there were."""

    def __init__(self) -> None:
        self.now, self.takes, self.scans = BEGAN, 60.0, 0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made, parts_of = Clock(), tables.parts_of

    def slow(changes: DataFrame) -> list[Batch]:
        made.now += made.takes
        made.scans += 1
        return parts_of(changes)

    monkeypatch.setattr(tables, "parts_of", slow)
    return made


@pytest.fixture
def run(spark: SparkSession, lake: Lake, clock: Clock) -> Callable[..., Merging]:
    """A run's second step; its scans alone are in the clock's count."""

    def run(*schemas: Any, floor: list[int] | None = None) -> Merging:
        floors = {NAME: floor} if floor else {}
        step = Merging(spark, lake, Schemas(schemas or [ITEMS]), unwatched(lake), floors, clock=clock)
        clock.scans = 0
        step.run()
        step.retry()
        return step

    return run


@pytest.fixture
def stopped(spark: SparkSession, lake: Lake, run: Callable[..., Merging], clock: Clock) -> float:
    """A table that waits for a shape, and was tried once in vain, which took a minute; until when it is left out."""
    land(spark, lake, change(seq(1), "c", item(1)))
    run()
    land(spark, lake, change(seq(2), "c", item(2), NEWER))
    assert "schema version 9" in run().stopped.tables[NAME].reason
    assert clock.scans == 1, "the run that stops it does not read the same changes once more"
    run()
    assert clock.scans == 1
    return clock.now + 600


def test_a_slow_one_comes_again_behind_ten_times_its_time(
    spark: SparkSession, lake: Lake, run: Callable[..., Merging], clock: Clock, stopped: float
) -> None:
    land(spark, lake, change(seq(3), "c", item(3), NEWER))  # a busy table has some in each run
    clock.takes = 0.0
    for now in (clock.now, stopped - 1):
        clock.now = now
        step = run()
        # What is new is looked at; what waited before is not.
        assert clock.scans <= 1
        assert step.tries.left == {NAME: stopped}
        assert "schema version 9" in step.stopped.tables[NAME].reason
    clock.now, clock.takes = stopped, 200.0
    step = run()
    assert (clock.scans, step.tries.left) == (1, {})
    assert run().tries.left == {NAME: clock.now + 900}, "a quarter of an hour at most"
    assert clock.scans == 0, "a run with nothing new reads nothing"
    clock.now += 900
    clock.takes = 0.0
    step = run(ITEMS, NEWER)
    assert (step.stopped.tables, ids(spark, lake)) == ({}, [(1, "a"), (2, "a"), (3, "a")])


class CrashError(Exception):
    pass


def test_a_run_that_dies_behind_a_slow_one_leaves_it_noted(
    spark: SparkSession, lake: Lake, run: Callable[..., Merging], clock: Clock
) -> None:
    land(spark, lake, change(seq(1), "c", item(1), NEWER))
    run()

    def crash(point: str) -> None:
        if point == "try noted":
            raise CrashError

    with hooked(crash), pytest.raises(CrashError):
        run()
    assert run().tries.left == {NAME: clock.now + 600}
    assert clock.scans == 0
    assert run(ITEMS, NEWER).stopped.tables == {}


@pytest.mark.usefixtures("stopped")
def test_it_is_tried_at_once_where_its_shapes_are_others(
    spark: SparkSession, lake: Lake, run: Callable[..., Merging]
) -> None:
    step = run(ITEMS, NEWER)
    assert (step.stopped.tables, ids(spark, lake)) == ({}, [(1, "a"), (2, "a")])


def test_it_is_where_the_pipeline_file_shows_its_values_otherwise(
    spark: SparkSession, lake_of: Callable[[Unfit], Lake], clock: Clock
) -> None:
    def run(setting: Unfit) -> Merging:
        step = merging(spark, lake_of(setting), PEOPLE)
        step.tries.clock = clock
        step.retry()
        return step

    land(spark, lake_of("fail"), change(seq(1), "c", person(1, d="2024-00-10"), PEOPLE))
    merging(spark, lake_of("fail"), PEOPLE).run()
    assert (run("fail").tries.left, run("fail").tries.left) == ({}, {("shop", "people"): clock.now + 600})
    assert run("null").stopped.tables == {}


@pytest.mark.usefixtures("stopped")
def test_where_somebody_mended_the_lakes_table(
    spark: SparkSession, lake: Lake, run: Callable[..., Merging], clock: Clock
) -> None:
    spark.sql(f"ALTER TABLE delta.`{lake.table(*NAME)}` SET TBLPROPERTIES ('a' = 'b')")
    run()
    assert clock.scans == 1
    run()
    assert clock.scans == 0, "that is no news any more"


@pytest.mark.usefixtures("stopped")
def test_where_it_has_another_snapshot(run: Callable[..., Merging]) -> None:
    assert run(floor=list(seq(2))).stopped.tables == {}, "the snapshot has the change"


@pytest.mark.usefixtures("stopped")
def test_where_the_clock_was_set_back(run: Callable[..., Merging], clock: Clock) -> None:
    clock.now = BEGAN - 3600
    run()
    assert clock.scans == 1


@pytest.mark.usefixtures("stopped")
def test_a_quick_one_is_tried_in_each_run(run: Callable[..., Merging], clock: Clock, lake: Lake) -> None:
    clock.now, clock.takes = clock.now + 600, 10.0
    for _ in range(3):
        assert run().tries.left == {}
        assert clock.scans == 1
    assert [(one["tried"], one["took"], one["by"]) for one in lake.read(lake.at("_stopped.json")) or ()] == [(0, 0, "")]


def test_what_an_earlier_version_noted_is_tried(
    spark: SparkSession, lake: Lake, run: Callable[..., Merging], clock: Clock
) -> None:
    land(spark, lake, change(seq(1), "c", item(1)))
    run()
    lake.write(lake.at("_stopped.json"), [{"db": "shop", "table": "items", "since": list(seq(1)), "reason": "then"}])
    assert StoppedTables(lake).tables[NAME].reason == "then"
    assert run().stopped.tables == {}
    assert clock.scans == 1


def test_the_status_and_the_report_say_when_it_is_tried_next(
    spark: SparkSession,
    pipeline: Pipeline,
    lake: Lake,
    compact: Callable[[], dict[str, Any]],
    clock: Clock,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(compaction, "Merging", partial(Merging, clock=clock))
    land(spark, lake, change(seq(2), "c", item(2), NEWER))
    for next_try in (None, None, int(BEGAN + 120 + 600) * 1000):  # stopped, tried, left out
        with pytest.raises(JobFailedError, match="its changes wait in _changes meanwhile, and later runs") as told:
            compact()
        assert told.value.facts["tables"]["shop.items"].get("next_try_ms") == next_try
        assert status.read(pipeline).tables["shop.items"].next_try_ms == next_try  # type: ignore[union-attr]
    shown = "\n".join(lines({"job": "compact", "pipeline": "shop", "ok": False, **told.value.facts}))
    assert "tried again at" in shown
    assert "2027-01-15 08:12:00 UTC" in shown
