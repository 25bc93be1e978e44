"""The lag in seconds: for how long something may be there that is not released."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import pytest

from streamer.control.report import lag_seconds

AGO = 600.0  # seconds since the last transaction


def lag(connected: bool = True, depth: int = 0, **seconds_ago: float) -> float:
    """With times as seconds before now; `released`: of the last released transaction's commit."""
    now = time.time()
    at = {name: now - ago for name, ago in seconds_ago.items()}
    last = SimpleNamespace(ts_ms=int((now - seconds_ago.get("last", AGO)) * 1000))
    stream: Any = SimpleNamespace(
        connected=connected, last=last, read_at=at.get("read", now - AGO), caught_up_at=at.get("caught_up", 0.0),
        complete_at=at.get("complete", 0.0),
    )  # fmt: skip
    ledger: Any = SimpleNamespace(depth=depth)
    return lag_seconds(stream, ledger, int((now - AGO) * 1000))


@pytest.mark.parametrize(
    ("facts", "seconds"),
    [
        ({"caught_up": 1, "complete": 1}, 0),
        ({"connected": False, "caught_up": 8, "complete": 8}, 8),  # the server is away since
        ({"depth": 1, "read": 7, "caught_up": 1, "complete": 8}, 8),  # Kafka is, and something came
        ({"depth": 5, "read": 0, "last": 300}, AGO),  # it catches up, behind a start
        ({"read": 0, "last": 300}, 300),
    ],
)
def test_it_is_since_when_something_may_be_there(facts: dict[str, Any], seconds: float) -> None:
    assert lag(**facts) == pytest.approx(seconds, abs=1)
