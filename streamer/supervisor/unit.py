"""One pipeline under the supervisor: started where it is wanted, restarted where it crashed, shown in any case.

A crash, and an error that time may mend, are followed by another start, after a pause that doubles each time. An error
that wants a person is not: the pipeline stays failed until it is started again or its file is changed.
"""

from __future__ import annotations

import random
import time
from typing import Any

import structlog

from contract.pipeline import Pipeline
from streamer.errors import HeadraceError
from streamer.supervisor.errors import ConflictError, CrashedError, StoppedHardError
from streamer.supervisor.folder import Found
from streamer.supervisor.output import Errors, Output
from streamer.supervisor.process import Process
from streamer.supervisor.wanted import Wanted
from streamer.supervisor.watch import Watch

log = structlog.get_logger("supervisor")
FIRST_SECONDS = 1.0
MAX_SECONDS = 60.0
GOOD_SECONDS = 60.0  # a run that held this long was a good one: the next pause is the shortest again
AGAIN = ("port_in_use",)  # of the errors that are final for the streamer: the one before it may be ending still
AGAIN_BY_ITSELF = "It is started again by itself."
FILE_WRONG = 2  # exit status


class Unit:
    """`key`: the pipeline's name, or the file's where that is wrong. `restarts`: since the supervisor's start;
    `next_at`: monotonic seconds. `held`: something else works on the pipeline, which must not be started."""

    def __init__(self, key: str, found: Found, wanted: Wanted, level: str, output: Output) -> None:
        self.key = key
        self.found = found
        self.wanted = wanted
        self._runs: Pipeline | None = None  # the one that the process was started with
        self._level = level
        self._output = output
        self.errors = Errors()
        self.process: Process | None = None
        self.restarts = 0
        self.next_at: float | None = None
        self.error: dict[str, Any] | None = None
        self.held = ""
        self.leaves = False
        self._outcome = ""  # of the last run, where it is not followed by another by itself: failed, finished
        self._failures = 0  # in a row
        self.watch = Watch(key, self._running, self._paused)

    def _running(self) -> tuple[Pipeline, int] | None:
        process, pipeline = self.process, self._runs
        return (pipeline, process.pid) if process is not None and pipeline is not None else None

    def _paused(self) -> Pipeline | None:
        return self.found.pipeline if self.state == "paused" else None

    @property
    def state(self) -> str:
        if self.process is not None:
            return self._process_state(self.process)
        if self.wanted != "running":
            return self.wanted
        if self.found.pipeline is None:
            return "invalid"
        return self._outcome or ("restarting" if self.next_at is not None else "starting")

    def _process_state(self, process: Process) -> str:
        if process.stopping:
            return "stopping"
        if self.watch.silent(process.began):
            return "unresponsive"
        status = self.watch.of(process.pid)
        return str(status["state"]) if status else "starting"

    def turn(self, now: float) -> None:
        """To be called often. `now`: monotonic seconds."""
        if self.process is not None:
            status = self.process.ended()
            if status is None:
                return
            process, self.process = self.process, None
            self._ended(process, status, now)
        wanted = self.wanted == "running" and not self.leaves and not self.held and not self._outcome
        if wanted and self.found.pipeline is not None and now >= (self.next_at or 0):
            self._start(now)

    def _start(self, now: float) -> None:
        if self.next_at is not None:
            self.restarts += 1
            self.next_at = None
        try:
            self.process = Process(self.key, self.found.path, self._level, self._output, self.errors)
        except OSError as error:
            cause = f"no process could be started: {error.strerror or error}"
            self._note(CrashedError("running", f"pipeline {self.key}", cause, AGAIN_BY_ITSELF))
            self._wait(now)
            return
        self._runs = self.found.pipeline
        log.info("started", pipeline=self.key, process=self.process.pid, restarts=self.restarts)

    def _ended(self, process: Process, status: int, now: float) -> None:
        ran = now - process.began
        self._failures = 0 if ran >= GOOD_SECONDS else self._failures
        log.info("ended", pipeline=self.key, status=status, seconds=round(ran, 1))
        if process.killed:
            self._note(StoppedHardError(
                "stopping", f"pipeline {self.key}", "it did not end within streamer.shutdown_seconds, and was killed",
                "Nothing is lost: what was not acknowledged is sent again at the next start.",
            ))  # fmt: skip
        if process.stopping:
            self.next_at = None
        elif status == 0 and self._runs and self._runs.streamer.mode == "oneshot":
            self._outcome, self.error = "finished", None
        elif status == FILE_WRONG or (status == 1 and process.failed and not _again(process.failed)):
            self._final(process.failed)
        else:
            self._crashed(status, process.failed, now)

    def _final(self, said: dict[str, Any] | None) -> None:
        self._outcome = "failed"
        if said is not None:
            self._said(said)
            return
        what = "the streamer found a mistake in the pipeline file that its log tells"
        self._note(ConflictError("starting", f"pipeline {self.key}", what, "Mend the file; it starts by itself."))

    def _crashed(self, status: int, said: dict[str, Any] | None, now: float) -> None:
        if said is not None:
            self._said(said)
        else:
            how = f"it was ended by signal {-status}" if status < 0 else f"it ended with status {status}"
            cause = f"{how}, and said nothing of its own; the log has its last words"
            self._note(CrashedError("running", f"pipeline {self.key}", cause, AGAIN_BY_ITSELF))
        self._wait(now)

    def _wait(self, now: float) -> None:
        pause = min(MAX_SECONDS, FIRST_SECONDS * 2**self._failures) * random.uniform(0.5, 1)
        self._failures += 1
        self.next_at = now + pause
        why = self.error and self.error["message"]
        failures = self._failures
        log.warning("restarting", pipeline=self.key, in_seconds=round(pause, 2), failures=failures, why=why)

    def _said(self, said: dict[str, Any]) -> None:
        """Its own last error, which is among the errors already."""
        words = {"kind": said["kind"], "message": said.get("error", ""), "next_step": said.get("next_step", "")}
        self.error = {"at": round(time.time(), 3), **words, "retryable": _again(said)}

    def _note(self, error: HeadraceError) -> None:
        at = round(time.time(), 3)
        again = isinstance(error, CrashedError)
        words = {"kind": error.kind, "message": str(error), "next_step": error.hint}
        self.error = {"at": at, **words, "retryable": again}
        self.errors.note("error", str(error), error.kind, error.hint, at, again)

    def changed(self, found: Found) -> None:
        """The file is another one now; a process that runs looks at it by itself."""
        self.found = found
        if found.error is not None:
            log.warning("pipeline file not taken", pipeline=self.key, error=str(found.error))
            self.errors.note("error", str(found.error), "pipeline_file", "Mend the file; it is read again by itself.")
        elif self._outcome != "finished":
            self.afresh()

    def afresh(self) -> None:
        """What was before is no reason to wait any more."""
        self._outcome, self._failures, self.next_at, self.error = "", 0, None, None

    def stop(self) -> None:
        if self.process is not None:
            assert self._runs is not None
            self.process.stop(self._runs.streamer.shutdown_seconds)
        self.next_at = None

    def restart(self) -> None:
        """With the file as it is now, once what was read is delivered."""
        if self.process is not None:
            self.stop()
        self.afresh()


def _again(said: dict[str, Any]) -> bool:
    return bool(said.get("retryable")) or said["kind"] in AGAIN
