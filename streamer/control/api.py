"""The service's HTTP side: `/status` (JSON), `/metrics` (Prometheus), `/healthz`, and `/`, a page for a person.

The port is taken before anything else is touched, so a second streamer of the same file stops at once.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn
from fastapi import FastAPI
from fastapi.responses import HTMLResponse, JSONResponse, Response

from contract.pipeline import Http
from streamer import VERSION
from streamer.control import metrics
from streamer.control.report import Report
from streamer.delivery_errors import PortInUseError

PAGE = Path(__file__).with_name("page.html")
UNHEALTHY = ("failed", "stopped")


def application(report: Report) -> FastAPI:
    app = FastAPI(title="Headrace streamer", version=VERSION, docs_url=None, redoc_url=None)

    @app.get("/status")
    def status() -> dict[str, Any]:
        """How the pipeline stands."""
        return report.as_dict()

    @app.get("/metrics")
    def prometheus() -> Response:
        """The same for Prometheus."""
        return Response(metrics.render(report), media_type="text/plain; version=0.0.4; charset=utf-8")

    @app.get("/healthz")
    def healthz() -> JSONResponse:
        """200 while the pipeline runs or waits for a server, 503 when it does not."""
        state = report.status.state
        return JSONResponse({"state": state}, status_code=503 if state in UNHEALTHY else 200)

    @app.get("/", response_class=HTMLResponse)
    def page() -> str:
        return PAGE.read_text(encoding="utf-8")

    return app


def take_port(http: Http) -> socket.socket:
    """Raises PortInUseError, also where the address is not this machine's."""
    taken = socket.socket(socket.AF_INET6 if ":" in http.host else socket.AF_INET, socket.SOCK_STREAM)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind((http.host, http.port))
        taken.listen(64)
    except OSError as error:
        taken.close()
        raise PortInUseError(
            "listening on",
            f"{http.host}:{http.port}",
            error.strerror or str(error),
            "Another streamer may run there (headrace status tells); stop it, or change streamer.http in the "
            "pipeline file.",
        ) from None
    return taken


@contextmanager
def serving(report: Report, listener: socket.socket) -> Iterator[None]:
    """Serves in a thread of its own for as long as the block lasts."""
    config = uvicorn.Config(application(report), log_config=None, access_log=False, lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="http", daemon=True)
    thread.start()
    try:
        yield
    finally:
        server.should_exit = True
        thread.join(timeout=2)
        listener.close()
