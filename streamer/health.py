"""Whether the other side of a sink answers: asked now and then, said once, shown as what is waited for."""

from __future__ import annotations

import time

import structlog

from streamer.control.status import Status
from streamer.sinks.port import Sink

log = structlog.get_logger("streamer")
REMIND_SECONDS = 30.0


class Health:
    """`away_since`: Unix seconds; None while it answers."""

    def __init__(self, sink: Sink, status: Status) -> None:
        self.sink = sink
        self.away_since: float | None = None
        self._status = status
        self._reminded = 0.0

    def ask(self, seconds: float, queued: int) -> bool:
        """Whether it answers within the time. `queued`: events that wait, for the log."""
        if self.sink.probe(seconds):
            self._back()
            return True
        now = time.time()
        first = self.away_since is None
        self.away_since = self.away_since or now
        if first or now - self._reminded >= REMIND_SECONDS:
            self._reminded = now
            self._status.wait_for(self.sink.title)
            away = round(now - self.away_since)
            error = self.sink.last_error
            log.warning("waiting", waiting_for=self.sink.title, seconds=away, error=error, queued_events=queued)
        return False

    def _back(self) -> None:
        if self.away_since is not None:
            away = round(time.time() - self.away_since)
            log.info("answers again", was_waiting_for=self.sink.title, seconds=away)
            self.away_since = None
            self._status.came_back(self.sink.title)
