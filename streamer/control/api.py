"""The service's HTTP side: `/status` (JSON), `/metrics` (Prometheus), `/healthz`, and `/`, a page for a person."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.responses import HTMLResponse, JSONResponse, Response

from streamer import VERSION
from streamer.control import metrics
from streamer.control.door import Door
from streamer.control.report import Report

PAGE = Path(__file__).with_name("page.html")
UNHEALTHY = ("failed", "stopped")


def application(report: Report, token: str = "") -> FastAPI:
    """`token`: what a request is to show; empty where none is asked for."""
    app = FastAPI(title="Headrace streamer", version=VERSION, docs_url=None, redoc_url=None)
    app.add_middleware(Door, token=token)

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
