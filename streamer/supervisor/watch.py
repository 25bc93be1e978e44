"""How a pipeline's process stands, asked over its port once a second, and how it went in the last minutes; while it is
paused, how far it is behind."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from contract.pipeline import Pipeline, PipelineFileError
from streamer.control.running import ask
from streamer.errors import HeadraceError
from streamer.supervisor.paused import PausedLag

EVERY_SECONDS = 1.0
SAMPLES = 300
SILENT_SECONDS = 10.0  # without an answer, after which a process counts as unresponsive

Running = Callable[[], tuple[Pipeline, int] | None]
Paused = Callable[[], Pipeline | None]


class Watch:
    """`running`: the pipeline and its process's id, None while there is none. `paused`: the pipeline, None where it is
    not paused. `status`: the last one; of a process that has ended too. `history`: `[Unix seconds, lag in seconds,
    events a second]`, the oldest first. `behind`: of a paused one, seconds."""

    def __init__(self, name: str, running: Running, paused: Paused) -> None:
        self._running, self._paused = running, paused
        self._lag, self._asks = PausedLag(), threading.Thread()
        self._with_it = 0.0  # Unix seconds: when its process last had all that the server had
        self._over = threading.Event()
        self.status: dict[str, Any] | None = None
        self.pid = 0  # of the process that `status` is of
        self._answered = 0.0
        self.history: deque[tuple[float, float, float]] = deque(maxlen=SAMPLES)
        threading.Thread(target=self._run, name=f"watch of {name}", daemon=True).start()

    @property
    def behind(self) -> float | None:
        return self._lag.seconds if self._paused() is not None else None

    def moved(self) -> None:
        """Its checkpoint is another one now."""
        self._lag.end(0.0)

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
                self._lag.end(self._with_it)
            elif (pipeline := self._paused()) is not None and self._lag.due and not self._asks.is_alive():
                # Beside: one that is away would hold up the first word of a process that is started again.
                self._asks = threading.Thread(target=self._ask_server, args=(pipeline,), daemon=True)
                self._asks.start()

    def _ask_server(self, pipeline: Pipeline) -> None:
        with suppress(HeadraceError, PipelineFileError):  # it is not known then, and asked again
            self._lag.ask(pipeline)
        if (seconds := self.behind) is not None:
            self.history.append((round(time.time(), 1), seconds, 0.0))

    def _ask(self, pipeline: Pipeline, pid: int) -> None:
        try:
            status = ask(pipeline)
        except HeadraceError:
            return
        if status.get("pid") != pid:  # another streamer has the port, which this one will tell of itself
            return
        self.status, self.pid, self._answered = status, pid, time.monotonic()
        if "lag_seconds" in status:
            self._with_it = status["now"] if status["lag_seconds"] == 0 else self._with_it
            sample = (round(time.time(), 1), status["lag_seconds"], status["rate_events_per_second"])
            self.history.append(sample)
