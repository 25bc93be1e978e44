"""Waiting for what comes back by itself: said once, shown as `waiting`, ended at once by a stop."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

import structlog

from streamer.control.status import Status
from streamer.errors import HeadraceError

log = structlog.get_logger("streamer")
Result = TypeVar("Result")
RETRY_SECONDS = 1.0
REMIND_SECONDS = 30.0


class Stopping(Exception):  # noqa: N818  a way out, no error
    """The service is to stop while something is waited for."""


class Patience:
    """`guard`: asked where a stop is; raises what ends the waiting besides."""

    def __init__(self, status: Status, stop: threading.Event) -> None:
        self._status = status
        self._stop = stop
        self.guard: Callable[[], None] | None = None

    def until_answered(self, step: Callable[[], Result], what: str) -> Result:
        """Repeats `step` while it raises a retryable error. Raises Stopping, and every other error as it is."""
        began = reminded = time.monotonic()
        while True:
            self.check()
            try:
                result = step()
            except HeadraceError as error:
                if not error.retryable:
                    raise
                self._status.note(error)
                now = time.monotonic()
                if self._status.wait_for(what) or now - reminded >= REMIND_SECONDS:
                    log.warning("waiting", waiting_for=what, seconds=round(now - began), error=str(error))
                    reminded = now
                self._stop.wait(RETRY_SECONDS)
                continue
            if self._status.came_back(what):
                log.info("answers again", was_waiting_for=what, seconds=round(time.monotonic() - began))
            return result

    def check(self) -> None:
        """Raises Stopping when the service is to stop, and what the guard raises."""
        if self._stop.is_set():
            raise Stopping
        if self.guard is not None:
            self.guard()
