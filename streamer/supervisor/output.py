"""What the pipelines' processes write on standard error: handed on, each line marked with its pipeline; errors kept.

A streamer logs JSON lines that carry its name. Whatever else comes (a crash's last words) becomes such a line.
"""

from __future__ import annotations

import contextlib
import json
import sys
import threading
import time
from collections import deque
from datetime import datetime
from typing import IO, Any

import structlog

from streamer.control import logs

log = structlog.get_logger("supervisor")
KEPT_ERRORS = 100
LEVELS = ("warning", "error", "critical")
LONGEST = 8192  # characters of a line that is no JSON


class Output:
    """`for_people`: lines are rendered for a terminal."""

    def __init__(self, for_people: bool) -> None:
        self._render = logs.for_people() if for_people else None
        self._lock = threading.Lock()

    def line(self, text: str, fields: dict[str, Any]) -> None:
        rendered = text
        if self._render is not None:
            rendered = str(self._render(None, "", dict(fields)))
        with self._lock, contextlib.suppress(OSError):  # nobody reads the log any more: that stops no pipeline
            print(rendered, file=sys.stderr, flush=True)


class Errors:
    """The last warnings and errors of a pipeline, the newest first in `all`. May be used by several threads."""

    def __init__(self) -> None:
        self._kept: deque[dict[str, Any]] = deque(maxlen=KEPT_ERRORS)

    def note(
        self, level: str, message: str, kind: str | None = None, next_step: str | None = None, at: float | None = None,
        retryable: bool | None = None,
    ) -> None:  # fmt: skip
        when = round(time.time() if at is None else at, 3)
        told = {"level": level, "kind": kind, "message": message, "next_step": next_step, "retryable": retryable}
        self._kept.appendleft({"at": when, **told})

    def all(self) -> list[dict[str, Any]]:
        return list(self._kept)


class Reader(threading.Thread):
    """Reads one process to the end of its output. `failed`: what it said of itself last, when it ended by an error of
    its own."""

    def __init__(self, pipeline: str, source: IO[bytes], output: Output, errors: Errors) -> None:
        super().__init__(name=f"output of {pipeline}", daemon=True)
        self._pipeline = pipeline
        self._source = source
        self._output = output
        self._errors = errors
        self.failed: dict[str, Any] | None = None

    def run(self) -> None:
        for raw in self._source:
            text = raw.decode("utf-8", "replace").rstrip("\r\n")
            try:
                if text:
                    self._take(text)
            except Exception as error:  # a pipe that is read no further would stop the process
                log.warning("a line was not handed on", pipeline=self._pipeline, error=type(error).__name__)
        self._source.close()

    def _take(self, text: str) -> None:
        try:
            fields = json.loads(text)
        except ValueError:
            fields = None
        if not isinstance(fields, dict) or "event" not in fields:
            log.warning("the streamer says", pipeline=self._pipeline, text=text[:LONGEST])
            return
        self._output.line(text, fields)
        if fields.get("level") in LEVELS:
            self._keep(fields)

    def _keep(self, fields: dict[str, Any]) -> None:
        if fields["event"] == "failed" and fields.get("kind"):
            self.failed = fields
        message = str(fields["event"])
        if detail := fields.get("error") or fields.get("found"):
            message = str(detail) if message == "failed" else f"{message}: {detail}"
        self._errors.note(
            fields["level"],
            message,
            fields.get("kind"),
            fields.get("next_step") or fields.get("fix"),
            _time(fields.get("timestamp")),
            fields["retryable"] if isinstance(fields.get("retryable"), bool) else None,
        )


def _time(text: object) -> float | None:
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return None
