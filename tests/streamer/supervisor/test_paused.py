"""How far a paused pipeline is behind: by its checkpoint and what the server says."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from contract.gtid import GtidSet
from streamer.supervisor import paused
from streamer.supervisor.paused import PausedLag
from tests.checkpoints import SOURCE, checkpoint
from tests.streamer.fakes import pipeline


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`n`: its last transaction; `at`: what the checkpoint, an hour old, has; `read`: how often that was read."""
    found = SimpleNamespace(n=5, at=5, read=0)

    def position(_: Any) -> Any:
        found.read += 1
        hour_ago = int((time.time() - 3600) * 1000)
        return found.at and checkpoint(gtid_set=f"{SOURCE}:1-{found.at}", ts_ms=hour_ago)

    def servers(_: Any) -> Any:
        chosen = SimpleNamespace(facts=SimpleNamespace(executed=GtidSet.parse(f"{SOURCE}:1-{found.n}")))
        return SimpleNamespace(any=lambda: chosen)

    monkeypatch.setattr(paused.outputs, "position", position)
    monkeypatch.setattr(paused, "Servers", servers)
    monkeypatch.setattr(paused, "EVERY_SECONDS", 0.0)
    return found


def seconds(lag: PausedLag) -> float | None:
    assert lag.due
    lag.ask(pipeline())
    return lag.seconds


def test_it_counts_from_when_the_pipeline_last_had_everything(server: Any) -> None:
    lag = PausedLag()
    assert seconds(lag) == 0.0
    server.n = 6
    time.sleep(0.01)
    assert 0.0 < (seconds(lag) or 0) < 60, "not since the last commit, an hour ago"
    assert server.read == 1
    lag.end(time.time() - 100)
    assert 100 <= (seconds(lag) or 0) < 160
    assert server.read == 2
    lag.end(0.0)
    assert 3600 <= (seconds(lag) or 0) < 3660


def test_before_the_first_start_nothing_is_known(server: Any) -> None:
    server.at = None
    assert seconds(PausedLag()) is None


def test_the_server_is_asked_now_and_then(server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(paused, "EVERY_SECONDS", 60.0)
    lag = PausedLag()
    assert seconds(lag) == 0.0
    assert not lag.due
    lag.end(0.0)
    assert lag.due
