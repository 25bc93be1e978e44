"""A webhook that keeps what it got."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import SimpleNamespace
from typing import Any

import pytest

from headrace import rereading


@pytest.fixture
def received() -> Any:
    """A webhook: `received.url`, and `received.bodies` of what it got."""
    got = SimpleNamespace(bodies=[], status=200)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            got.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(got.status)
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    got.url = f"http://127.0.0.1:{server.server_port}/hook"
    yield got
    server.shutdown()
    server.server_close()


@pytest.fixture
def variables(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Airflow's variables, as the task that has stale tables read again finds them."""
    known: dict[str, Any] = {}

    class Variables:
        @staticmethod
        def get(key: str, default: Any, deserialize_json: bool) -> Any:
            return json.loads(known[key]) if key in known else default

        @staticmethod
        def set(key: str, value: Any, serialize_json: bool) -> None:
            known[key] = json.dumps(value)

    monkeypatch.setattr(rereading, "Variable", Variables)
    return known
