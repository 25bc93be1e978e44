"""What a snapshot may take of its server: groups of a second's rows, and waits while others need it."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from contract.pipeline_snapshot import Snapshot
from spark.errors import LakeError
from spark.snapshot import load
from spark.snapshot.load import Load


class Clock:
    """Time that passes by sleeping alone."""

    def __init__(self) -> None:
        self.now = 100.0

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Asked:
    """A server with so many threads, and so far behind, at each look."""

    def __init__(self, *threads: int, lags: list[list[float | None]] | None = None) -> None:
        self.threads, self.lags = itertools.chain(threads, itertools.repeat(threads[-1] if threads else 1)), lags or []
        self.server = self.pipeline = self.source = self
        self.where, self.path, self.user = "db:3306", "shop.yaml", "headrace"

    def row(self, sql: str) -> tuple[str, int]:
        return "Threads_running", next(self.threads)

    def channels(self, otherwise: str) -> list[dict[str, Any]]:
        lags = self.lags.pop(0) if len(self.lags) > 1 else self.lags[0] if self.lags else []
        return [{"Channel": "", "Seconds_Behind_Source": lag} for lag in lags]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(load, "time", made)
    return made


def test_without_a_limit_nothing_waits(clock: Clock) -> None:
    free = Load(Snapshot(), Asked())  # type: ignore[arg-type]
    free.took(10**9, clock.now)
    free.wait()
    assert (free.chunk_rows, free.group, clock.now) == (100_000, 16, 100.0)


def test_rows_come_no_faster_than_the_limit(clock: Clock) -> None:
    bound = Load(Snapshot(parallelism=4, max_rows_per_second=2000), Asked())  # type: ignore[arg-type]
    assert (bound.chunk_rows, bound.group) == (500, 4)
    for _ in range(10):
        bound.wait()
        began = clock.now
        clock.sleep(0.2)  # what the read of a group takes
        bound.took(2000, began)
    bound.wait()
    assert clock.now == pytest.approx(110.0)
    slow = Load(Snapshot(parallelism=4, max_rows_per_second=100), Asked())  # type: ignore[arg-type]
    assert slow.chunk_rows == 100


def test_a_busy_server_is_waited_for_and_told(clock: Clock) -> None:
    told: list[str] = []
    rules = Snapshot(max_threads_running=10)
    Load(rules, Asked(*[11] * 45, 10), told.append).wait()  # type: ignore[arg-type]
    assert clock.now == 145.0
    assert told == ["waiting: db:3306 runs 11 threads, snapshot.max_threads_running is 10"] * 2
    with pytest.raises(LakeError, match=r"runs 11 threads.*goes on where it stands.*shop\.yaml"):
        Load(rules, Asked(11), told.append).wait()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("job", "later"), [("the repair", "the next run reads all of it again"), ("the check", "takes up what it has kept")]
)
def test_who_gives_up_is_told_with_what_the_next_run_does(clock: Clock, job: str, later: str) -> None:
    with pytest.raises(LakeError, match=rf"{job} gives up, and .*{later}"):
        Load(Snapshot(max_threads_running=10), Asked(11), print, job).wait()  # type: ignore[arg-type]


def test_a_replica_behind_or_standing_still_is_waited_for(clock: Clock) -> None:
    told: list[str] = []
    rules = Snapshot(replica="db2", max_replica_lag_seconds=2.5)
    late = Asked(lags=[[0.0], [3.0, 1.0], [None, 0.0], [2.0, 0.0]])
    bound = Load(rules, late, told.append)  # type: ignore[arg-type]
    bound.prove()
    bound.wait()
    assert clock.now == 102.0
    assert told == ["waiting: db:3306 is 3 s behind, snapshot.max_replica_lag_seconds is 2.5"]
    with pytest.raises(LakeError, match=r"replicates from no server.*snapshot\.replica"):
        Load(rules, Asked()).prove()  # type: ignore[arg-type]
