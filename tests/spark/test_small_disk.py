"""A disk that fills up while a job other than a compaction works on the lake: one message, no row is lost, and with
space again the same job comes to its end."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pyspark.sql import SparkSession

from contract.pipeline import Pipeline
from spark import failpoints
from spark.failures import message_of
from spark.jobs import backfill as backfilling
from spark.jobs import erase as erasing
from spark.lake.erasures import Erasures
from spark.lake.lake import Lake
from spark.maintenance.maintenance import Maintaining
from spark.maintenance.tidying import files_of
from tests.small_disk import filled, mounted
from tests.spark.changes_by_hand import ITEMS, change
from tests.spark.lake_by_hand import AT, NAME, checkpoint, item, land, merge, seq, stage
from tests.spark.sessions import pipeline_in
from tests.spark.test_erasing import COUNTED, GONE, holding, stats  # noqa: F401  a fixture
from tests.spark.test_erasing import filled as with_traces
from tests.spark.test_erasing import ids as ids_of
from tests.spark.test_repair import damage

Compact = Callable[[], dict[str, Any]]
KIB = 1024
LONG = [secrets.token_hex(10_000) for _ in range(30)]  # which do not compress


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """Where the pipeline's lake is."""
    with mounted(tmp_path / "lake", "size=32m") as folder:
        yield folder


@pytest.fixture
def pipeline(tmp_path: Path, disk: Path) -> Pipeline:
    return pipeline_in(tmp_path)


def refused(disk: Path, left: int, pipeline: Pipeline, work: Callable[[], object]) -> str:
    """The message of a job that had so many bytes."""
    with filled(disk, left):
        told = told_by(pipeline, work)
    assert told is not None, "it had space enough"
    assert str(disk) in told
    assert "free some space" in told
    return told


def told_by(pipeline: Pipeline, work: Callable[[], object]) -> str | None:
    """None of a job that came to its end."""
    try:
        work()
    except Exception as error:
        return message_of(error, pipeline)
    return None


def rows(path: str) -> list[tuple[Any, ...]]:
    return sorted(pl.read_delta(path).select("id", "name").rows())


@pytest.mark.soak
@pytest.mark.parametrize("left", [300 * KIB, 40 * KIB])
def test_a_maintenance(
    spark: SparkSession, pipeline: Pipeline, lake: Lake, compact: Compact, disk: Path, left: int
) -> None:
    """Of a table whose files are to be joined, which takes as much again; with the smaller rest not one file fits."""
    land(spark, lake, *(change(seq(AT + n), "c", item(n, LONG[n])) for n in range(3)))
    compact()
    merge(spark, lake, *(change(seq(AT + n), "c", item(n, LONG[n])) for n in range(3, 30)))
    path, expected = lake.table(*NAME), list(enumerate(LONG))
    before = files_of(spark, path).count
    told = refused(disk, left, pipeline, lambda: Maintaining(spark, lake).run(["shop.items"]))
    assert told.removeprefix("shop.items: ").startswith(
        f"the disk is full: free some space under {pipeline.lake.place} "
    )
    lake.forget_logs()
    assert (rows(path), files_of(spark, path).count) == (expected, before)
    done = Maintaining(spark, lake).run(["shop.items"])
    assert (rows(path), done["tables"]["shop.items"]["files_after"]) == (expected, 1)


@pytest.mark.soak
@pytest.mark.usefixtures("stats")
def test_an_erasure(spark: SparkSession, pipeline: Pipeline, lake: Lake, disk: Path) -> None:
    """Full behind one action of it, then behind a later one: what was begun is taken up, and told once."""
    with_traces(spark, lake)

    def erase() -> dict[str, Any]:
        given = {"present": "yes", "now": "yes", "run": "r1", "by": "ada"}
        return erasing.erase(spark, pipeline, ["shop.items"], "[1]", **given)

    for point in ("erasure noted", "changes erased", "marked rows purged"):
        with ExitStack() as full, failpoints.hooked(filling(disk, point, full)):
            told = told_by(pipeline, erase)
        assert told is not None, f"it did not come to {point!r}"
        assert told.startswith(f"the disk is full: free some space under {pipeline.lake.place} "), told
        lake.forget_logs()
        assert {2, 3} <= {*ids_of(spark, lake)}
    erase()
    assert (ids_of(spark, lake), holding(lake, GONE)) == ([2, 3], [])
    [row] = spark.read.format("delta").load(lake.at("_erasures")).collect()
    assert (row["run"], row["removed"]) == ("r1", COUNTED)
    assert Erasures(lake).known.begun == []


def filling(disk: Path, at: str, full: ExitStack) -> Callable[[str], None]:
    """Of a point that a run comes by several times, at the first."""
    waits = [at]

    def hook(reached: str) -> None:
        if reached in waits:
            waits.clear()
            full.enter_context(filled(disk, 0))

    return hook


@pytest.mark.parametrize("left", [300 * KIB, pytest.param(4 * KIB, marks=pytest.mark.soak)])
def test_a_part_that_is_staged(
    spark: SparkSession, pipeline: Pipeline, lake: Lake, compact: Compact, disk: Path, left: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Of a backfill. What was staged by then gives its space back."""

    class Broker:
        def __init__(self, pipeline: Pipeline) -> None:
            self.schemas = lambda: [ITEMS]
            self.checkpoint = lambda: checkpoint(1000)

    monkeypatch.setattr(backfilling, "Broker", Broker)
    stage(spark, lake, "1", AT, *(item(n, LONG[n]) for n in range(20)))
    land(spark, lake, *(change(seq(AT + n), "u", item(n, LONG[n])) for n in range(20, 30)))
    compact()
    damage(spark, lake, (1, "x"), (99, "x"))
    full = refused(disk, left, pipeline, lambda: backfilling.backfill(spark, pipeline, ["shop.items"]))
    assert full.startswith("the disk is full"), full
    assert lake.list(lake.at("_parts")) == []
    assert compact()["parts"] == {}, "nothing is taken in of what was not staged whole"
    assert rows(lake.table(*NAME)) == [(1, "x"), (99, "x")]
    [id] = backfilling.backfill(spark, pipeline, ["shop.items"])["parts"]
    assert compact()["parts"][id]["rows"] == {"changed": 1, "extra": 1, "missing": 29}
    assert rows(lake.table(*NAME)) == list(enumerate(LONG))
