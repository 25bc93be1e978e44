"""How a pipeline's process stands, asked over its port once a second, and how it went in the last minutes."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from http.client import HTTPException
from typing import Any

from contract.pipeline import Pipeline
from streamer.control.running import ask
from streamer.errors import HeadraceError

EVERY_SECONDS = 1.0
SAMPLES = 300
SILENT_SECONDS = 10.0  # without an answer, after which a process counts as unresponsive

Running = Callable[[], tuple[Pipeline, int] | None]


class Watch:
    """`running`: the pipeline and its process's id, None while there is none. `status`: the last one; of a process that
    has ended too. `history`: `[Unix seconds, lag in seconds, events a second]`, the oldest first."""

    def __init__(self, name: str, running: Running) -> None:
        self._running = running
        self._over = threading.Event()
        self.status: dict[str, Any] | None = None
        self.pid = 0  # of the process that `status` is of
        self._answered = 0.0
        self.history: deque[tuple[float, float, float]] = deque(maxlen=SAMPLES)
        threading.Thread(target=self._run, name=f"watch of {name}", daemon=True).start()

    def end(self) -> None:
        self._over.set()

    def of(self, pid: int) -> dict[str, Any] | None:
        """The status of that process, once it has answered."""
        return self.status if self.pid == pid else None

    def silent(self, began: float) -> bool:
        """Whether a process that began then (monotonic seconds) has not answered for a while."""
        return time.monotonic() - max(self._answered, began) > SILENT_SECONDS

    def _run(self) -> None:
        while not self._over.wait(EVERY_SECONDS):
            if (found := self._running()) is not None:
                self._ask(*found)

    def _ask(self, pipeline: Pipeline, pid: int) -> None:
        try:
            status = ask(pipeline)
        except (HeadraceError, HTTPException):  # a process that ends may stop in the middle of an answer
            return
        if status.get("pid") != pid:  # another streamer has the port, which this one will tell of itself
            return
        self.status, self.pid, self._answered = status, pid, time.monotonic()
        if "lag_seconds" in status:
            sample = (round(time.time(), 1), status["lag_seconds"], status["rate_events_per_second"])
            self.history.append(sample)
