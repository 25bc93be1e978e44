"""What the API says of pipelines. Times are Unix seconds, durations seconds."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from streamer.supervisor.problems import Mistake
from streamer.supervisor.tokens import Role
from streamer.supervisor.unit import Unit

if TYPE_CHECKING:
    from streamer.seek.plan import Plan

WELL = ("streaming", "standby")


class Failure(BaseModel):
    """`kind` and `next_step` are null where what was said has none. `retryable`: whether the pipeline goes on, or is
    started again, by itself; null where nothing says so."""

    at: float
    kind: str | None
    message: str
    next_step: str | None
    retryable: bool | None = None
    level: str = "error"


class Place(BaseModel):
    file: str
    pos: int


class Summary(BaseModel):
    """`state`: of the process where there is one (standby, starting, waiting, streaming, stopping, unresponsive), else
    paused, stopped, failed, restarting, finished (a oneshot run) or invalid (the file has mistakes). `restarts`: after
    crashes, since the supervisor's start. `released`: the last checkpoint; all before it is delivered."""

    name: str
    file: str
    state: str
    wanted: Literal["running", "paused", "stopped"]
    mode: Literal["continuous", "oneshot"] | None
    pid: int | None
    restarts: int
    restart_in_seconds: float | None
    lag_seconds: float | None = Field(description="of a paused one too, for which the server is asked")
    rate_events_per_second: float | None
    events: int | None = Field(description="released since the pipeline's first start")
    released: Place | None
    waiting_for: str | None
    error: Failure | None = Field(description="the present one, or the last that stopped it")
    mistakes: list[Mistake] = Field(description="of the file as it is now")


class Detail(Summary):
    """`status`: what the streamer's own /status says, or said last; null before it has answered. `history`: the last
    five minutes, as [Unix seconds, lag in seconds, events a second]."""

    status: dict[str, Any] | None
    history: list[tuple[float, float, float]]


class Shown(BaseModel):
    """Who asks."""

    role: Role


class Wanted(BaseModel):
    """`to`: as `streamer.start` of the pipeline file. `skip_changes`: what was not delivered may be left out for good.
    `dry_run`: nothing is moved."""

    model_config = ConfigDict(extra="forbid")

    to: str = Field(min_length=1, max_length=65_536)
    skip_changes: bool = False
    dry_run: bool = False


class Moved(BaseModel):
    """`moves`: false where the pipeline stands there already. `sent_again`, `skipped`: GTID sets. `snapshot_behind`:
    the place behind which the tables' snapshots must begin."""

    moves: bool
    file: str
    pos: int
    gtid_set: str
    epoch: int
    sent_again: str
    skipped: str
    found: str
    snapshot_behind: str


class Checked(BaseModel):
    """`name`: of the pipeline, where the file is right."""

    valid: bool
    name: str | None
    mistakes: list[Mistake]


def moved(planned: Plan) -> Moved:
    return Moved(**planned.facts())


def summary(unit: Unit) -> Summary:
    return Summary(**_facts(unit))


def detail(unit: Unit) -> Detail:
    return Detail(**_facts(unit), status=unit.watch.status, history=list(unit.watch.history))


def _facts(unit: Unit) -> dict[str, Any]:
    process, found, status = unit.process, unit.found, unit.watch.status or {}
    alive = process is not None and unit.watch.of(process.pid) is not None
    wrong = found.error.problems if found.error is not None else []
    next_at = unit.next_at
    return {
        "name": unit.key,
        "file": found.path.name,
        "state": unit.state,
        "wanted": unit.wanted,
        "mode": found.pipeline.streamer.mode if found.pipeline else None,
        "pid": process.pid if process else None,
        "restarts": unit.restarts,
        "restart_in_seconds": None if next_at is None else round(max(0.0, next_at - time.monotonic()), 1),
        "lag_seconds": status.get("lag_seconds") if alive else unit.watch.behind,
        "rate_events_per_second": status.get("rate_events_per_second") if alive else None,
        "events": (status.get("events") or {}).get("released"),
        "released": (status.get("position") or {}).get("released"),
        "waiting_for": status.get("waiting_for") if alive else None,
        "error": (_present(status) if alive else None) or (None if unit.state in WELL else unit.error),
        "mistakes": [Mistake(**vars(problem)) for problem in wrong],
    }


def _present(status: dict[str, Any]) -> dict[str, Any] | None:
    """Not an error that is over."""
    error: dict[str, Any] | None = status["last_error"]
    return error if status["state"] in ("waiting", "failed", "starting") else None
