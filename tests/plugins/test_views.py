"""The page: for those who are logged in alone, and saying what is known, also when little is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from airflow.api_fastapi.core_api.security import get_user
from fastapi.testclient import TestClient

from headrace.views import overview as views
from headrace.views.app import app
from stack.ports import free_port
from streamer.control.http import serving, take_port
from tests.streamer.browser import shown, text

UUID = "11111111-1111-1111-1111-111111111111"
CHECKPOINT = {
    "pipeline": "shop", "connector_id": "c", "server_id": 1, "server_uuid": UUID, "epoch": 1, "file": "b.000001",
    "pos": 4, "gtid_set": f"{UUID}:1-9", "ts_ms": 1_790_000_000_000, "events": 1, "written_at": 1,
}  # fmt: skip
STALE = {"kind": "alter", "since": [1, 1, 4], "ts_ms": 1, "reason": "stale since an ALTER TABLE"}
TABLE = {"db": "shop", "rows": 5, "changes": 7, "freshness_ms": 1_790_000_000_000}
STATUS = {
    "pipeline": "shop", "run": 3, "written_at": 1, "seconds": 2.5, "checkpoint": CHECKPOINT, "changes_version": 1,
    "tables": {
        "shop.orders": {**TABLE, "table": "orders", "stale": STALE},
        "shop.other": {**TABLE, "table": "other", "foreign": {"reason": "somebody else changed it", "at": 1}},
        "shop.young": {**TABLE, "table": "young", "ahead": "its snapshot is ahead"},
        "shop.items": {**TABLE, "table": "items", "stopped": "it has no primary key", "outdated": "its rows of up to"},
        "shop.clicks": {**TABLE, "table": "clicks", "rows": 0, "changes_only": True},
    },
}  # fmt: skip
LAST = {
    "at": "2026-01-01T00:00:00+00:00",
    "pipeline": "shop",
    "tables": {
        "shop.orders": {"equal": False, "source_count": 6, "lake_count": 5},
        "shop.clicks": {"equal": False, "source_count": 9, "lake_count": 8},
        "shop.audit": {"equal": None, "source_count": None, "reason": "not compared: its deletes are left out"},
    },
    "expectations": {"ok": True, "tables": {}},
}


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "pipelines").mkdir()
    monkeypatch.setenv("HEADRACE_PIPELINES", str(tmp_path / "pipelines"))
    monkeypatch.setenv("SHOP_PASSWORD", "hunter2secret")
    (tmp_path / "pipelines" / "shop.yaml").write_text(
        "format: 1\nname: shop\nsource: {host: localhost, user: u, password: '${SHOP_PASSWORD}', server_id: 7}\n"
        "tables: {include: ['shop.*']}\nkafka: {bootstrap: 'localhost:9092'}\n"
        f"lake: {{path: {tmp_path}/lake}}\n"
    )
    return tmp_path / "lake" / "shop"


@pytest.fixture
def client(lake: Path) -> Iterator[TestClient]:
    app.dependency_overrides[get_user] = lambda: "someone"
    yield TestClient(app)
    app.dependency_overrides.clear()


def write(path: Path, value: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(value if isinstance(value, str) else json.dumps(value))


@pytest.mark.parametrize("path", ["/", "/api/pipelines", "/docs/shop/index.html"])
def test_nobody_who_is_not_logged_in_sees_anything(lake: Path, path: str) -> None:
    assert TestClient(app).get(path).status_code == 401


def test_before_the_first_run_it_says_what_to_start(client: TestClient) -> None:
    found = client.get("/api/pipelines").json()
    assert found["mistakes"] == []
    [shop] = found["pipelines"]
    assert shop["note"] == "No compaction has run yet: start shop.compaction."
    assert (shop["tables"], shop["check"], shop["alerts"]) == ([], None, [])


def test_tables_proof_and_alerts(client: TestClient, lake: Path) -> None:
    write(lake / "_status.json", STATUS)
    write(lake / "_quality" / "last.json", LAST)
    write(lake / "_quality" / "docs" / "index.html", "<p>docs</p>")
    write(lake / "_quality" / "alerts.jsonl", '{"at": "2026-01-01T00:00:00+00:00", "message": "shop.orders: rows"}\n')
    answer = client.get("/api/pipelines")
    [shop] = answer.json()["pipelines"]
    tables = {table["name"]: table for table in shop["tables"]}
    assert tables["shop.orders"]["rows"] == 5
    assert tables["shop.orders"]["equal"] is False
    assert tables["shop.orders"]["fault"] == "rows 6 in the source, 5 in the lake"
    assert tables["shop.items"]["stopped"] == "it has no primary key"
    assert (tables["shop.orders"]["stale"], tables["shop.items"]["stale"]) == ("stale since an ALTER TABLE", None)
    assert (tables["shop.items"]["outdated"], tables["shop.orders"]["outdated"]) == ("its rows of up to", None)
    assert (tables["shop.other"]["foreign"], tables["shop.items"]["foreign"]) == ("somebody else changed it", None)
    assert (tables["shop.young"]["ahead"], tables["shop.items"]["ahead"]) == ("its snapshot is ahead", None)
    told = {name: (table["equal"], table["fault"], table["not_compared"]) for name, table in tables.items()}
    assert told["shop.audit"] == (None, None, "not compared: its deletes are left out")
    assert told["shop.orders"][2] is told["shop.items"][2] is None
    clicks = tables["shop.clicks"]
    assert (clicks["changes_only"], tables["shop.orders"]["changes_only"]) == (True, False)
    assert (clicks["rows"], clicks["changes"]) == (None, 7), "it has no rows, which is no count of any"
    assert told["shop.clicks"] == (None, None, None), "a check of before is of rows that it had then"
    assert shop["complete_to_ms"] == 1_790_000_000_000
    assert shop["check"] == {"at": LAST["at"], "ok": False, "docs": "docs/shop/index.html"}
    assert shop["alerts"][0]["message"] == "shop.orders: rows"
    assert client.get("/docs/shop/index.html").text == "<p>docs</p>"
    assert "hunter2secret" not in answer.text


def test_what_speaks_against_a_table_or_the_lake_since_its_check_is_shown(client: TestClient, lake: Path) -> None:
    """And of a check what it looked at, and when: the newest one may have been of other tables."""
    unequal = {**TABLE, "table": "young", "unequal": "records of its topic were put aside"}
    refused = {**STATUS, "refused": "somebody else changed _changes", "tables": {"shop.young": unequal}}
    write(lake / "_status.json", refused)
    equal, at = {"equal": True, "source_count": 5, "lake_count": 5}, "2025-12-01T00:00:00+00:00"
    sampled = {**equal, "chunks": 30, "chunks_compared": 3, "at": at}
    tables = {"shop.young": sampled, "shop.whole": {**equal, "chunks": 3, "chunks_compared": 3}, "shop.old": equal}
    write(lake / "_quality" / "last.json", {**LAST, "tables": tables})
    [shop] = client.get("/api/pipelines").json()["pipelines"]
    assert shop["note"] == "somebody else changed _changes"
    told = {table["name"]: (table["unequal"], table["sample"], table["checked_at"]) for table in shop["tables"]}
    assert told == {
        "shop.young": ("records of its topic were put aside", "3 of 30 chunks", at),
        "shop.whole": (None, None, LAST["at"]),
        "shop.old": (None, None, LAST["at"]),
    }


def test_a_table_that_was_not_judged_is_not_shown_as_well(client: TestClient, lake: Path) -> None:
    left_out = {"ok": None, "evaluated": 0, "failed": [], "unjudged": {"its rows": "it was altered meanwhile"}}
    equal = {"equal": True, "source_count": 5, "lake_count": 5}
    last = {**LAST, "tables": {"shop.young": equal}, "expectations": {"ok": None, "tables": {"shop.young": left_out}}}
    write(lake / "_status.json", STATUS)
    write(lake / "_quality" / "last.json", last)
    [shop] = client.get("/api/pipelines").json()["pipelines"]
    assert {table["name"]: table["unjudged"] for table in shop["tables"] if table["unjudged"]} == {
        "shop.young": "its rows: it was altered meanwhile"
    }
    assert shop["check"]["ok"] is None


@pytest.mark.parametrize(("day", "since"), [(31, ""), (1, views.SINCE)])
def test_a_fault_that_a_snapshot_may_have_mended_says_so(client: TestClient, lake: Path, day: int, since: str) -> None:
    """The check found it at the beginning of 2026."""
    at = datetime(2025 if day == 31 else 2026, 12 if day == 31 else 1, day, 12, tzinfo=UTC)
    snapshot = {"id": "1", "p0": "", "p1": "", "rows": 6, "applied_at": int(at.timestamp() * 1000), "floor": None}
    write(
        lake / "_status.json", {**STATUS, "tables": {"shop.orders": {**TABLE, "table": "orders", "snapshot": snapshot}}}
    )
    write(lake / "_quality" / "last.json", LAST)
    [table] = [
        one for one in client.get("/api/pipelines").json()["pipelines"][0]["tables"] if one["name"] == "shop.orders"
    ]
    assert table["fault"] == "rows 6 in the source, 5 in the lake" + since


def test_a_wrong_file_and_an_unreadable_status_are_said(client: TestClient, lake: Path, tmp_path: Path) -> None:
    write(tmp_path / "pipelines" / "wrong.yaml", "name: [")
    write(lake / "_status.json", "{")
    found = client.get("/api/pipelines").json()
    assert "wrong.yaml" in found["mistakes"][0]
    assert found["pipelines"][0]["note"]


@pytest.mark.parametrize("path", ["/docs/shop/%2e%2e/last.json", "/docs/shop/..%2flast.json", "/docs/other/index.html"])
def test_only_the_docs_of_a_known_pipeline_are_served(client: TestClient, lake: Path, path: str) -> None:
    write(lake / "_quality" / "last.json", LAST)
    assert client.get(path).status_code == 404


def test_each_pipeline_is_compared_with_its_kind_of_server(
    client: TestClient, lake: Path, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """In a browser, which makes the page of what the API tells."""
    shop = (tmp_path / "pipelines" / "shop.yaml").read_text()
    crm = shop.replace("name: shop", "name: crm").replace("source: {", "source: {flavor: mariadb, ")
    (tmp_path / "pipelines" / "crm.yaml").write_text(crm)
    for name in ("shop", "crm"):
        write(lake.parent / name / "_status.json", {**STATUS, "pipeline": name})
    port = free_port()
    with serving(app, take_port("127.0.0.1", port)):
        document = shown(tmp_path_factory.mktemp("chromium"), f"http://127.0.0.1:{port}/")
    crm, shop = (text(part) for part in re.findall(r"<section>(.*?)</section>", document, re.DOTALL))
    assert crm.startswith("crm ")
    assert "Snapshot Equal to MariaDB" in crm
    assert shop.startswith("shop ")
    assert "Snapshot Equal to MySQL" in shop


def test_the_page_itself(client: TestClient) -> None:
    assert "<title>Headrace</title>" in client.get("/").text
