"""The process of one pipeline: `headrace run` on its file, ended by the supervisor or with it.

The process reads its standard input to the end and stops then: so it never outlives the supervisor, however that ended.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from streamer.supervisor.output import Errors, Output, Reader

SLACK_SECONDS = 10.0  # beyond streamer.shutdown_seconds, for what does not wait for Kafka
LAST_WORDS_SECONDS = 2.0
PROGRAM = (sys.executable, "-m", "streamer.cli", "run")
PRIVATE = "HEADRACE_API_"  # variables of the supervisor alone


class Process:
    """`began`: monotonic seconds."""

    def __init__(self, name: str, file: Path, level: str, output: Output, errors: Errors) -> None:
        self.began = time.monotonic()
        self._deadline: float | None = None
        self.killed = False
        command = [*PROGRAM, "--log", "json", "--log-level", level, "--supervised"]
        environment = {key: value for key, value in os.environ.items() if not key.startswith(PRIVATE)}
        self._process = subprocess.Popen(
            [*command, str(file)], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
            env=environment, start_new_session=True,  # Ctrl-C is the supervisor's to hand on
        )  # fmt: skip
        assert self._process.stderr is not None
        self._reader = Reader(name, self._process.stderr, output, errors)
        self._reader.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def failed(self) -> dict[str, Any] | None:
        """What it said of itself when it ended by an error of its own."""
        return self._reader.failed

    @property
    def stopping(self) -> bool:
        return self._deadline is not None

    def stop(self, seconds: float) -> None:
        """Asks it to deliver what it has read, and to end; `seconds`: how long that may take."""
        if self._deadline is None:
            self._deadline = time.monotonic() + seconds + SLACK_SECONDS
            self._process.send_signal(signal.SIGTERM)

    def ended(self) -> int | None:
        """Its exit status, less than 0 where a signal ended it; None while it runs. Kills one that was asked to stop
        and took too long."""
        status = self._process.poll()
        if status is None:
            if self._deadline is not None and time.monotonic() > self._deadline and not self.killed:
                self.killed = True
                self._process.kill()
            return None
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._reader.join(LAST_WORDS_SECONDS)
        return status
