"""The examples of docs/sinks.md, as they stand there."""

from __future__ import annotations

import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from streamer.contract_suites.sink import Stored
from tests.streamer.sinks import reading_lines

PAGE = Path(__file__).parents[2] / "docs" / "sinks.md"


def examples(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def module() -> str:
    """The classes of the page: the sink, and the place of checkpoints."""
    sink, positions, _ = examples("python")
    return sink + positions


def everything() -> dict[str, Any]:
    """Its suites too."""
    scope: dict[str, Any] = {"__name__": "sinks_page"}
    exec("\n".join(examples("python")), scope)
    return scope


class Hook(ThreadingHTTPServer):
    """What is posted to it, as records; it answers 503 while it is not `well`."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Posted)
        self.well = True
        self.data = b""
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/changes"

    @property
    def records(self) -> list[Stored]:
        return reading_lines.parsed(self.data)

    def end(self) -> None:
        self.shutdown()
        self.server_close()


class Posted(BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers["Content-Length"]))
        assert all(json.loads(line) for line in data.splitlines())
        if self.server.well:
            self.server.data += data
        self.send_response(200 if self.server.well else 503)
        self.end_headers()

    def log_message(self, format: str, *args: Any) -> None:
        pass
