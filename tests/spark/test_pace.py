"""A check reads no faster than the file allows, and says how far it is."""

from __future__ import annotations

import time

import pytest

from contract.pipeline import Pipeline
from spark.proof import pace
from spark.proof.pace import Pace
from spark.proof.reading import Reading
from tests.spark.test_load import Clock


def test_no_more_rows_a_second_than_allowed_over_all_readers() -> None:
    began, bounded = time.monotonic(), Pace(1000, lambda line: None)
    for _ in range(3):
        bounded.took(100, time.monotonic(), "shop.orders", 1, 3)
    assert time.monotonic() - began >= 0.3
    began, free = time.monotonic(), Pace(None, lambda line: None)
    free.took(10**9, began, "shop.orders", 1, 1)
    assert time.monotonic() - began < 0.3


def test_a_rest_is_no_credit_for_the_reads_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A check waits for a busy server, or for the lake, and reads on when that has only just let go."""
    clock = Clock()
    monkeypatch.setattr(pace, "time", clock)
    bounded = Pace(1000, lambda line: None)
    bounded.took(1000, clock.now, "shop.orders", 1, 9)
    clock.sleep(1800)
    began = clock.now
    for done in range(2, 7):
        bounded.took(1000, clock.now, "shop.orders", done, 9)
    assert clock.now - began == pytest.approx(5.0)


def test_readers_side_by_side_share_the_pace_behind_a_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock()
    monkeypatch.setattr(pace, "time", clock)
    bounded, began = Pace(1000, lambda line: None), clock.now
    for done in range(1, 5):  # all of them began at once
        bounded.took(250, began, "shop.orders", done, 4)
    assert clock.now - began == pytest.approx(1.0)


def test_progress_is_told_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(pace, "TELL_SECONDS", 0.0)
    Pace(None, told.append).took(1500, time.monotonic(), "shop.orders", 3, 12)
    assert told[0].startswith("shop.orders: 3/12 chunks read, 1,500 rows in all, ")


def test_a_walk_for_chunks_takes_the_server_no_faster_and_tells_how_far_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(pace, "TELL_SECONDS", 0.0)
    bounded, began = Pace(1000, told.append), time.monotonic()
    for so_far in (100, 200):
        bounded.walked(100, began, "shop.orders", so_far)
    assert time.monotonic() - began >= 0.2
    assert told[-1] == "shop.orders: its key is walked for chunks, 200 rows so far"
    assert bounded.rows == 0, "none of them was read"


def test_the_pace_of_a_check_is_the_snapshots(pipeline: Pipeline) -> None:
    changed = pipeline.snapshot.model_copy(update={"max_rows_per_second": 700})
    reading = Reading(None, pipeline.model_copy(update={"snapshot": changed}), None, 0, None)  # type: ignore[arg-type]
    assert reading.chunks.pace.most == 700
