"""A failure is logged, kept and posted, with table and difference; a webhook that is away hides nothing."""

from __future__ import annotations

import socket
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from headrace import pipeline_files
from headrace.alerts import Alert, AllClear
from headrace.spark_job import JobFailed
from quality import folder
from tests.plugins.failures_by_hand import RESULT, failed, pipeline_file, succeeded, verified


def test_all_clear_is_said_once_behind_a_failure(tmp_path: Path, received: Any) -> None:
    file = pipeline_file(tmp_path, received.url)
    AllClear(file)(succeeded())
    assert received.bodies == [], "it had not failed"
    Alert(file)(failed())
    AllClear(file)(succeeded("other"))
    for _ in range(2):
        AllClear(file)(succeeded())
    alert, clear = received.bodies
    assert clear["clear"]
    assert clear["message"] == "all clear: shop.orders"
    assert clear["tables"]["shop.orders"] == f"all clear, at fault since {alert['since']['shop.orders']}"
    assert clear["since"] == alert["since"]
    Alert(file)(failed())
    assert len(received.bodies) == 3, "the same failure is news again"


def test_an_alert_says_since_when_and_what_to_do(tmp_path: Path, received: Any) -> None:
    file = pipeline_file(tmp_path, received.url)
    pipeline = pipeline_files.load(file)
    long_ago = "2026-01-0{}T00:00:00+00:00".format
    kept: dict[str, Any] = {"dag": "shop.quality", "task": "verify", "message": "earlier", "posted": True, "tables": {}}
    folder.append_alert(pipeline, {**kept, "at": long_ago(4), "since": {"shop.orders": long_ago(3)}})
    Alert(file)(failed())
    assert received.bodies[-1]["since"] == {"shop.orders": long_ago(3)}
    assert "Start the DAG shop.repair" in received.bodies[-1]["next_step"]
    Alert(file)({**failed(), "exception": RuntimeError("the server is away")})
    assert received.bodies[-1]["since"] == {"shop.orders": long_ago(3)}, "nobody said that it is well again"
    Alert(file)(verified(orders={"equal": False, "since": long_ago(5)}))
    assert received.bodies[-1]["since"] == {"shop.orders": long_ago(5)}, "the check knows better"
    folder.append_alert(pipeline, {**kept, "at": long_ago(6), "clear": True, "since": {"shop.orders": long_ago(3)}})
    Alert(file)(failed())
    assert received.bodies[-1]["since"] == {"shop.orders": received.bodies[-1]["at"]}, "a fault of its own"


def test_behind_a_check_of_expectations_it_has_the_address_of_their_pages(
    tmp_path: Path, received: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AIRFLOW__API__BASE_URL", "http://air.example:8080/")
    file = pipeline_file(tmp_path, received.url)
    Alert(file)({**failed(), "exception": JobFailed({**RESULT, "expectations": {"ok": True, "tables": {}}})})
    address = "http://air.example:8080/headrace/docs/shop/index.html"
    assert received.bodies[-1]["data_docs"] == address
    assert f"data docs: {address}" in received.bodies[-1]["text"].splitlines()
    unwritten = {"ok": True, "docs": None, "tables": {}}
    Alert(file)({**failed(), "exception": JobFailed({**RESULT, "error": "no room", "expectations": unwritten})})
    assert "data_docs" not in received.bodies[-1], "those that are there are of a check before"
    Alert(file)({**failed(), "exception": JobFailed({**RESULT, "error": "MySQL is away"})})
    assert "data_docs" not in received.bodies[-1]


def test_it_is_logged_kept_and_posted(tmp_path: Path, received: Any, capsys: pytest.CaptureFixture[str]) -> None:
    file = pipeline_file(tmp_path, received.url)
    Alert(file)(failed())
    kept = folder.read_alerts(pipeline_files.load(file))[0]
    assert kept["tables"] == {
        "shop.orders": "rows 5 in the source, 4 in the lake, checksum 1 in the source, 2 in the lake",
    }
    assert (kept["dag"], kept["task"], kept["message"]) == ("shop.quality", "verify", "1 of 2 tables differ")
    assert kept.pop("posted") is True
    words = received.bodies[0].pop("text").splitlines()  # which Slack and Mattermost show
    assert received.bodies == [kept]
    assert words == [
        "shop.quality verify failed: 1 of 2 tables differ",
        f"next step: {kept['next_step']}",
        "log: http://a/log",
        f"shop.orders: {kept['tables']['shop.orders']} (since {kept['since']['shop.orders']})",
    ]
    logged = capsys.readouterr().out
    assert "ALERT shop.orders: rows 5 in the source, 4 in the lake" in logged
    assert "next step: Start the DAG shop.repair" in logged


@pytest.fixture
def garbage() -> Any:
    """The URL of a server that answers one request, with what is no HTTP."""

    def answer() -> None:
        with server.accept()[0] as caller:
            caller.recv(65_536)
            caller.sendall(b"garbage\r\n\r\n")

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=answer, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/secret"


def test_a_webhook_that_refuses_or_is_away_is_only_logged(
    tmp_path: Path, received: Any, garbage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    received.status = 500
    urls = (received.url, "http://127.0.0.1:9/secret", "http://127.0.0.1:9/se cret", garbage)
    for url in urls:
        Alert(pipeline_file(tmp_path, url))(failed())
    assert len(folder.read_alerts(pipeline_files.load(pipeline_file(tmp_path)))) == len(urls)
    logged = capsys.readouterr().out
    for cause in ("HTTPError 500", "ConnectionRefusedError Connection refused", "InvalidURL", "BadStatusLine"):
        assert f"quality.webhook (127.0.0.1) did not take the alert: {cause}" in logged
    assert "cret" not in logged, "a webhook's path is a secret"


@pytest.fixture
def redirecting() -> Any:
    """A webhook that answers each POST with a status of its path, and a page there for every GET."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(int(self.path.rpartition("/")[2]))
            self.send_header("Location", f"http://localhost:{server.server_port}/secret/login")
            self.end_headers()

        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield SimpleNamespace(url=f"http://127.0.0.1:{server.server_port}/secret", asked=asked)
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_webhook_that_redirects_has_not_taken_the_alert(
    tmp_path: Path, redirecting: Any, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    """A client would follow it by a GET, without the alert."""
    file = pipeline_file(tmp_path, f"{redirecting.url}/{status}")
    Alert(file)(failed())
    assert redirecting.asked == []
    assert [kept["posted"] for kept in folder.read_alerts(pipeline_files.load(file))] == [False]
    logged = capsys.readouterr().out
    assert f"did not take the alert: HTTPError {status}, a redirect to localhost, which no alert follows" in logged
    assert "cret" not in logged


def test_a_text_of_hundreds_of_tables_fits_into_a_chat(tmp_path: Path, received: Any) -> None:
    wrong = {f"shop.t{n}": {"equal": False, "source_count": n, "lake_count": 0} for n in range(300)}
    well = {"shop.t0": {"equal": True, "chunks": 1, "chunks_compared": 1}}
    file = pipeline_file(tmp_path, received.url)
    Alert(file)({**failed(), "exception": JobFailed({**RESULT, "error": "x" * 5000, "tables": wrong})})
    Alert(file)({**failed(), "exception": JobFailed({**RESULT, "tables": {**wrong, **well}})})
    long, short = (body["text"] for body in received.bodies)
    assert "next step: " in long
    assert len(long) <= 4000
    assert short.splitlines()[-2:] == ["and 279 more", "well again: shop.t0"]
    AllClear(file)(succeeded("verify", "shop.t1"))
    text = received.bodies[-1]["text"]
    assert "shop.t1: all clear" in text
    assert "not looked at, and at fault since it was: shop.t2 (" in text


def test_a_text_says_of_each_fault_since_when_once(tmp_path: Path, received: Any) -> None:
    at = "2026-01-05T00:00:00+00:00"
    differs = {"equal": False, "differences": {"missing": 2}, "since": at}
    file = pipeline_file(tmp_path, received.url)
    Alert(file)(verified(orders=differs, items={"equal": False, "reason": "not yet snapshotted"}))
    first = received.bodies[-1]
    stopped = {"stopped": "no column x"}
    Alert(file)(verified(orders=differs, items={"equal": False, "reason": "stale"}, lines=stopped))
    words = received.bodies[-1]["text"].splitlines()
    assert words[-3:] == [
        f"shop.orders: 2 rows missing in the lake, first seen {at} (keys in _differences of the lake)",
        f"shop.items: stale (since {first['at']})",
        f"shop.lines: stopped: no column x (since {received.bodies[-1]['at']})",
    ]
    AllClear(file)(succeeded())
    assert "(since" not in received.bodies[-1]["text"]


def test_any_other_failure_is_told_too(tmp_path: Path) -> None:
    file = pipeline_file(tmp_path)
    Alert(file)({**failed(), "exception": RuntimeError("no broker")})
    kept = folder.read_alerts(pipeline_files.load(file))[0]
    assert (kept["message"], kept["tables"]) == ("no broker", {})


def test_newest_first(tmp_path: Path) -> None:
    file = pipeline_file(tmp_path)
    for text in ("one", "two", "three"):
        Alert(file)({**failed(), "exception": RuntimeError(text)})
    assert [alert["message"] for alert in folder.read_alerts(pipeline_files.load(file), last=2)] == ["three", "two"]
