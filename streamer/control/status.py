"""How the pipeline stands: written by the stream, read by the API, the metrics and `headrace status`.

One thread writes, others read; every field is replaced as a whole, so a reader needs no lock.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Any, Literal

from streamer.errors import HeadraceError

State = Literal["standby", "starting", "waiting", "streaming", "stopping", "stopped", "failed"]
RATE_SECONDS = 10.0


class Status:
    """`since`: Unix seconds of the last change of state."""

    def __init__(self, pipeline: str) -> None:
        self.pipeline = pipeline
        self.started_at = self.since = time.time()
        self.error: dict[str, Any] | None = None
        self._phase: State = "starting"
        self._waits: tuple[str, ...] = ()

    @property
    def state(self) -> State:
        return "waiting" if self._waits and self._phase in ("starting", "streaming") else self._phase

    @property
    def waiting_for(self) -> str:
        return " and ".join(self._waits)

    def enter(self, phase: State) -> None:
        before = self.state
        self._phase = phase
        if self.state != before:
            self.since = time.time()

    def wait_for(self, what: str) -> bool:
        """Returns whether it is a new thing to wait for."""
        if what in self._waits:
            return False
        self.since = time.time() if not self._waits else self.since
        self._waits = (*self._waits, what)
        return True

    def came_back(self, what: str) -> bool:
        """Returns whether it was waited for."""
        if what not in self._waits:
            return False
        self._waits = tuple(name for name in self._waits if name != what)
        self.since = time.time() if not self._waits else self.since
        return True

    def note(self, error: HeadraceError) -> None:
        """Keeps the last error. `retryable`: whether it is tried again by itself."""
        at = round(time.time(), 3)
        told = {"kind": error.kind, "message": str(error), "next_step": error.hint}
        self.error = {"at": at, **told, "retryable": error.retryable}

    def fail(self, error: HeadraceError) -> None:
        self.note(error)
        self.enter("failed")

    def as_dict(self) -> dict[str, Any]:
        return {
            "pipeline": self.pipeline,
            "state": self.state,
            "since": round(self.since, 3),
            "waiting_for": self.waiting_for or None,
            "last_error": self.error,
            "started_at": round(self.started_at, 3),
        }


class Rate:
    """Events a second over the last ten seconds, from samples of a counter. Times are monotonic seconds."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque()

    def sample(self, now: float, count: int) -> None:
        self._samples.append((now, count))
        while self._samples[0][0] < now - RATE_SECONDS:
            self._samples.popleft()

    def value(self) -> float:
        samples = list(self._samples)
        if len(samples) < 2 or samples[-1][0] <= samples[0][0]:
            return 0.0
        return (samples[-1][1] - samples[0][1]) / (samples[-1][0] - samples[0][0])
