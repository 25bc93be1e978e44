"""The streamer of one pipeline as a detached process: `headrace run PIPELINE`."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import httpx
import psutil

from stack import kept
from stack.paths import CHECKOUT, program
from stack.process import Server


class StreamerService(Server):
    """One streamer. `port` is the one of the pipeline file's `streamer.http`, given as HEADRACE_STREAMER_PORT too.

    `settings` are environment variables for the pipeline file, such as HEADRACE_MYSQL_PASSWORD.
    """

    name = "streamer"
    title = "the streamer"
    port_option = "--streamer-port"
    start_seconds = 120.0

    def __init__(
        self, home: Path | str, pipeline: Path | str, port: int, settings: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(home, port)
        self.pipeline = Path(pipeline).absolute()
        self.settings = dict(settings or {})

    @property
    def url(self) -> str:
        return f"http://{self.address}"

    def command(self) -> Sequence[str]:
        return [str(program("headrace")), "run", str(self.pipeline)]

    def folder(self) -> Path:
        return CHECKOUT

    def environment(self) -> Mapping[str, str]:
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)])
        ours = {"PATH": path, "HEADRACE_STREAMER_PORT": str(self.port), "PYTHONUNBUFFERED": "1", "TZ": "UTC"}
        return {**os.environ, **ours, **self.settings}

    def keeps(self, running: psutil.Process) -> list[str]:
        """Another pipeline file, or another value of a variable that it reads."""
        file = running.cmdline()[-1]
        if file != str(self.pipeline):
            return [f"{file} and not with {self.pipeline}"]
        return kept.other_settings(running.environ(), self.environment(), kept.named_in([self.pipeline]))

    def healthy(self) -> bool:
        """Whether it streams, or waits for a server that is away: then it is well itself."""
        try:
            return httpx.get(f"{self.url}/status", timeout=5).json()["state"] in ("streaming", "waiting")
        except (httpx.HTTPError, ValueError, KeyError):
            return False
