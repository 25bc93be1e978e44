"""Who may look at the streamer's own port."""

from __future__ import annotations

import pytest
from starlette.testclient import TestClient

from streamer.control.api import application
from streamer.control.report import Report
from streamer.control.status import Status
from tests.streamer.fakes import pipeline

TOKEN = "0123456789abcdef0123"


def client(token: str, host: str) -> TestClient:
    return TestClient(application(Report(pipeline(), Status("sales")), token), base_url=f"http://{host}:8181")


@pytest.mark.parametrize("path", ["/", "/status", "/metrics", "/nothing"])
def test_with_a_token_nothing_but_the_health_is_shown_without_it(path: str) -> None:
    asked = client(TOKEN, "db1.example.org")
    for headers in ({}, {"Authorization": f"Bearer {TOKEN}x"}, {"Authorization": "Basic !"}, {"Authorization": TOKEN}):
        refused = asked.get(path, headers=headers)
        assert refused.status_code == 401
        assert refused.headers["WWW-Authenticate"].startswith("Basic"), "by which a browser asks for it"
        assert "sales" not in refused.text
    expected = 404 if path == "/nothing" else 200
    assert asked.get(path, headers={"Authorization": f"Bearer {TOKEN}"}).status_code == expected
    assert asked.get(path, auth=("anybody", TOKEN)).status_code == expected
    assert asked.get("/healthz").json() == {"state": "starting"}


def test_without_one_a_page_of_elsewhere_reads_nothing() -> None:
    assert client("", "127.0.0.1").get("/status").status_code == 200
    assert client("", "localhost").get("/metrics").status_code == 200
    rebound = client("", "evil.example.org").get("/status")
    assert rebound.status_code == 403
    assert "sales" not in rebound.text
