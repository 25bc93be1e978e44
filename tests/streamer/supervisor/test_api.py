"""The REST API: who may do what, what is refused and how it says so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from contract.checkpoint import Checkpoint
from contract.gtid import GtidSet
from contract.pipeline import Pipeline
from streamer.seek import command
from streamer.seek.errors import SkipsChangesError
from streamer.seek.plan import Plan
from streamer.supervisor import guard, tokens
from streamer.supervisor.api import application
from streamer.supervisor.errors import ServeError
from streamer.supervisor.tokens import Tokens
from tests.streamer.fakes import SOURCE
from tests.streamer.supervisor.conftest import Served, text

READ, OPERATE = "read-token-0123456789", "operate-token-0123456789"
YAML = {"Content-Type": "application/yaml"}
HERE = "http://127.0.0.1:8180"


def client(served: Served, *, guarded: bool = False) -> TestClient:
    known = Tokens([READ], [OPERATE]) if guarded else Tokens([], [])
    return TestClient(application(served.supervisor, known), base_url=HERE, raise_server_exceptions=False)


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
def api(served: Served) -> Iterator[TestClient]:
    served.run()
    with client(served) as made:
        yield made


def problem(answer: Any, status: int, kind: str) -> dict[str, Any]:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    found: dict[str, Any] = answer.json()
    assert (found["kind"], found["status"]) == (kind, status)
    assert found["cause"]
    assert found["next_step"]
    return found


def test_a_pipeline_is_made_shown_changed_paused_resumed_stopped_started_and_deleted(
    api: TestClient, served: Served
) -> None:
    file = text("shop")
    made = api.post("/pipelines", content=file, headers=YAML)
    assert made.status_code == 201, made.text
    assert made.headers["location"] == "/pipelines/shop"
    assert api.get("/pipelines/shop/file").text == file == (served.folder / "shop.yaml").read_text()
    served.wait(lambda: api.get("/pipelines/shop").json()["state"] == "streaming")
    shown = api.get("/pipelines/shop").json()
    assert shown["lag_seconds"] == 1.5
    assert shown["released"] == {"file": "binlog.000001", "pos": 4}
    assert shown["history"][0][1:] == [1.5, 42.0]
    for order, state in (("pause", "paused"), ("resume", "streaming"), ("stop", "stopped"), ("start", "streaming")):
        assert api.post(f"/pipelines/shop/{order}").status_code == 200
        served.wait(lambda state=state: api.get("/pipelines/shop").json()["state"] == state)
    assert api.put("/pipelines/shop", content=file + "# more\n", headers=YAML).status_code == 200
    assert [one["name"] for one in api.get("/pipelines").json()] == ["shop"]
    assert api.delete("/pipelines/shop").status_code == 204
    served.wait(lambda: api.get("/pipelines").json() == [])
    problem(api.get("/pipelines/shop"), 404, "unknown_pipeline")


def test_a_mistake_in_a_file_is_told_with_its_line_and_its_fix(api: TestClient, served: Served) -> None:
    wrong = text("shop").replace("tables:", "tabels:")
    found = problem(api.post("/pipelines", content=wrong, headers=YAML), 422, "pipeline_file")
    mistake = next(one for one in found["mistakes"] if one["key"] == "tabels")
    assert (mistake["line"], mistake["fix"]) == (5, "did you mean tables?")
    assert not list(served.folder.glob("*.yaml"))
    checked = api.post("/validate", content=wrong, headers=YAML).json()
    assert checked["valid"] is False
    assert mistake in checked["mistakes"]
    assert api.post("/validate", content=text("shop"), headers=YAML).json() == {
        "valid": True, "name": "shop", "mistakes": []
    }  # fmt: skip
    assert not list(served.folder.glob("*.yaml"))


def test_what_was_sent_is_in_no_answer_where_it_may_be_a_secret(api: TestClient) -> None:
    literal = text("shop").replace("${SERVED_PASSWORD}", "hunter2-literal")
    told = api.post("/pipelines", content=literal, headers=YAML)
    found = problem(told, 422, "pipeline_file")
    assert "plain text" in found["mistakes"][0]["message"]
    assert "hunter2" not in told.text
    api.post("/pipelines", content=text("shop"), headers=YAML)
    assert "never-to-be-seen" not in api.get("/pipelines/shop").text + api.get("/pipelines/shop/file").text


def test_orders_that_do_not_go_with_the_state_are_conflicts(api: TestClient, served: Served) -> None:
    file = text("shop")
    api.post("/pipelines?start=false", content=file, headers=YAML)
    problem(api.post("/pipelines/shop/pause"), 409, "conflict")
    problem(api.post("/pipelines/shop/resume"), 409, "conflict")
    problem(api.post("/pipelines", content=file, headers=YAML), 422, "pipeline_file")
    problem(api.put("/pipelines/shop", content=text("other"), headers=YAML), 422, "pipeline_file")
    problem(api.post("/pipelines", content="{}", headers={"Content-Type": "application/json"}), 415,
            "unsupported_media_type")  # fmt: skip
    problem(api.delete("/pipelines"), 405, "method_not_allowed")
    problem(api.get("/nothing"), 404, "not_found")
    problem(api.post("/pipelines", content=b"\xff\xfe", headers=YAML), 422, "pipeline_file")
    problem(api.post("/pipelines", content="[" * 100_000, headers=YAML), 422, "pipeline_file")


def test_a_body_without_end_is_cut_off(api: TestClient) -> None:
    def endless() -> Iterator[bytes]:
        while True:
            yield b"x" * 65_536

    large = b"x" * (guard.MAX_BODY + 1)
    problem(api.post("/pipelines", content=large, headers=YAML), 413, "content_too_large")
    bounded = (chunk for chunk, _ in zip(endless(), range(8), strict=False))
    answer = api.post("/pipelines", content=bounded, headers={**YAML, "Transfer-Encoding": "chunked"})
    assert answer.status_code == 413
    assert answer.headers["content-type"] == "application/problem+json"


def test_tokens_open_what_their_role_may(served: Served) -> None:
    served.put("shop")
    served.run().wait(lambda: served.supervisor.units())
    with client(served, guarded=True) as api:
        assert api.get("/healthz").status_code == 200
        refused = api.get("/pipelines")
        problem(refused, 401, "unauthorized")
        assert refused.headers["www-authenticate"] == "Bearer"
        problem(api.get("/pipelines", headers=bearer("wrong-token-0123456789")), 401, "unauthorized")
        assert api.get("/pipelines", headers=bearer(READ)).status_code == 200
        problem(api.post("/pipelines/shop/pause", headers=bearer(READ)), 403, "forbidden")
        problem(api.post("/validate", content="a: 1", headers={**YAML, **bearer(READ)}), 403, "forbidden")
        assert served.supervisor.unit("shop").wanted == "running"
        assert api.post("/pipelines/shop/pause", headers=bearer(OPERATE)).status_code == 200
        assert api.get("/metrics", headers=bearer(OPERATE)).status_code == 200


def test_without_tokens_other_pages_of_the_browser_give_no_orders(api: TestClient, served: Served) -> None:
    served.put("shop")
    served.wait(lambda: served.supervisor.units())
    foreign = {"Origin": "http://evil.example"}
    problem(api.post("/pipelines/shop/stop", headers=foreign), 403, "foreign_origin")
    problem(api.get("/pipelines", headers={"Host": "evil.example:8180"}), 403, "foreign_origin")
    assert served.supervisor.unit("shop").wanted == "running"
    assert api.post("/pipelines/shop/stop", headers={"Origin": HERE}).status_code == 200


def test_a_pipeline_that_stands_still_is_moved(
    api: TestClient, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    place = Checkpoint(
        pipeline="shop", connector_id="c", server_id=1, server_uuid="u", epoch=4, file="binlog.000002", pos=9,
        gtid_set="", ts_ms=1, events=1, written_at=1,
    )  # fmt: skip

    def seek(pipeline: Pipeline, *more: Any) -> Plan:
        asked.append((pipeline.name, *more))
        if more[0] == "latest":
            raise SkipsChangesError("moving", "shop to latest", "changes would be lost", "Say so.")
        return Plan(place, GtidSet.parse(f"{SOURCE}:5-7"), GtidSet(), "found", "binlog.000003:4")

    monkeypatch.setattr(command, "seek", seek)
    api.post("/pipelines", content=text("shop"), headers=YAML)
    served.wait(lambda: served.state("shop") == "streaming")
    problem(api.post("/pipelines/shop/seek", json={"to": "earliest"}), 409, "conflict")
    moved = api.post("/pipelines/shop/seek", json={"to": "earliest", "dry_run": True}).json()
    assert (moved["epoch"], moved["pos"], moved["sent_again"]) == (4, 9, f"{SOURCE}:5-7")
    assert served.state("shop") == "streaming", "it was only asked"
    api.post("/pipelines/shop/pause")
    served.wait(lambda: served.state("shop") == "paused")
    assert api.post("/pipelines/shop/seek", json={"to": "earliest"}).json() == moved
    problem(api.post("/pipelines/shop/seek", json={"to": "latest"}), 409, "skips_changes")
    problem(api.post("/pipelines/shop/seek", json={"to": "latest", "skip": True}), 422, "request")
    problem(api.post("/pipelines/shop/seek", content="no JSON", headers={"Content-Type": "application/json"}), 422,
            "request")  # fmt: skip
    assert asked == [("shop", "earliest", False, True), ("shop", "earliest", False), ("shop", "latest", False)]
    assert api.post("/pipelines/shop/resume").status_code == 200


def test_metrics_tell_states_and_restarts(api: TestClient, served: Served) -> None:
    served.put("crashes")
    served.wait(lambda: served.supervisor.units() and served.supervisor.unit("crashes").restarts >= 1)
    text = api.get("/metrics").text
    assert 'headrace_supervised_state{pipeline="crashes",state="streaming"} 0.0' in text
    restarts = next(
        line for line in text.splitlines() if line.startswith('headrace_restarts_total{pipeline="crashes"}')
    )
    assert float(restarts.rpartition(" ")[2]) >= 1
    [error] = api.get("/pipelines/crashes/errors?limit=1").json()
    assert error["kind"] == "crashed"
    served.put("wants")
    served.wait(lambda: len(served.supervisor.units()) == 2 and served.state("wants") == "failed")
    line = 'headrace_supervised_error{kind="purged",message="The binlog is gone.",pipeline="wants"} 1.0'
    assert line in api.get("/metrics").text
    error = api.get("/pipelines/wants").json()["error"]
    assert (error["message"], error["retryable"]) == ("The binlog is gone.", False)
    [told] = api.get("/pipelines/wants/errors?limit=1").json()
    assert (told["message"], told["retryable"]) == (error["message"], False)


def test_an_address_that_others_reach_needs_a_token() -> None:
    none, some = Tokens([], []), Tokens([], [OPERATE])
    for host in ("127.0.0.1", "::1", "localhost"):
        tokens.refuse_open(host, none)
    tokens.refuse_open("0.0.0.0", some)
    for host in ("0.0.0.0", "::", "10.0.0.1", "db.example"):
        with pytest.raises(ServeError, match="HEADRACE_API_OPERATE_TOKENS"):
            tokens.refuse_open(host, none)


def test_tokens_come_from_the_environment_and_from_files_and_are_seen_no_more(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "tokens"
    file.write_text(f"{OPERATE}\nanother-token-0123456789\n")
    monkeypatch.setenv("HEADRACE_API_READ_TOKENS", READ)
    monkeypatch.setenv("HEADRACE_API_OPERATE_TOKENS_FILE", str(file))
    known = tokens.from_environment()
    assert (known.role(READ), known.role(OPERATE), known.role("another-token-0123456789")) == (
        "read", "operate", "operate"
    )  # fmt: skip
    assert known.role("") is None
    assert OPERATE not in repr(vars(known))
    assert "HEADRACE_API_READ_TOKENS" not in tokens.os.environ
    monkeypatch.setenv("HEADRACE_API_READ_TOKENS", "short")
    with pytest.raises(ServeError, match="less than 16") as caught:
        tokens.from_environment()
    assert "short" not in str(caught.value).replace("shorter", "")
