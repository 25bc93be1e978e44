"""A supervisor over a folder, with stand-ins for the streamers: processes that behave as their names say."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stack.ports import free_port
from streamer.supervisor import process, unit, watch
from streamer.supervisor.folder import Folder
from streamer.supervisor.output import Output
from streamer.supervisor.supervisor import Supervisor
from streamer.supervisor.wanted import WantedStates

ROOT = Path(__file__).parents[3]
PIPELINE = """\
# kept as it was written
format: 1
name: {name}
source: {{host: 127.0.0.1, port: 1, user: u, password: "${{SERVED_PASSWORD}}", server_id: 7}}
tables: {{include: ["{name}.*"]}}
kafka: {{bootstrap: "127.0.0.1:1"}}
streamer: {{http: {{port: {port}}}, mode: {mode}, shutdown_seconds: 1}}
lake: {{path: lake}}
"""


def text(name: str, **more: Any) -> str:
    return PIPELINE.format(name=name, **{"port": free_port(), "mode": "continuous", **more})


class Served:
    """`port` is said to be the supervisor's own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self._stop: threading.Event | None = None
        self.open()

    def open(self) -> None:
        files = Folder([self.folder], ("127.0.0.1", self.port))
        self.supervisor = Supervisor(files, WantedStates(files.state_file), "INFO", Output(False))

    def run(self) -> Served:
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self.supervisor.run, args=(self._stop,))
        self._thread.start()
        return self

    def close(self) -> None:
        if self._stop is not None:
            self._stop.set()
            self._thread.join(20)
            assert not self._thread.is_alive()
            self._stop = None

    def put(self, name: str, **more: Any) -> Path:
        path = self.folder / f"{name}.yaml"
        path.write_text(text(name, **more))
        return path

    def state(self, name: str) -> str:
        return self.supervisor.unit(name).state

    def wait(self, holds: Callable[[], Any], seconds: float = 20) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            if holds():
                return
            time.sleep(0.02)
        states = {one.key: (one.state, one.error) for one in self.supervisor.units()}
        raise AssertionError(f"not within {seconds} s: {states}")


@pytest.fixture
def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    monkeypatch.setenv("SERVED_PASSWORD", "never-to-be-seen")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setattr(process, "PROGRAM", (sys.executable, str(Path(__file__).with_name("fake_streamer.py"))))
    monkeypatch.setattr(unit, "FIRST_SECONDS", 0.05)
    monkeypatch.setattr(watch, "EVERY_SECONDS", 0.05)
    made = Served(tmp_path)
    yield made
    made.close()
