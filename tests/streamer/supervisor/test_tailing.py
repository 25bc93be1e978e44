"""Changes as server-sent events: what each says, and when a read ends."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from streamer import tail
from streamer.delivery_errors import BrokerUnreachableError
from streamer.supervisor import tailing
from streamer.supervisor.api import application
from streamer.supervisor.tokens import Tokens
from streamer.tail import Change
from tests.streamer.supervisor.conftest import Served, text


def change(number: int, table: str = "t") -> Change:
    source: dict[str, Any] = {"db": "shop", "table": table, "seq": [0, 3, 400, number, 0], "ts_ms": 9, "gtid": "u:1",
              "file": "binlog.000003", "pos": 500}  # fmt: skip
    if number % 2:  # in Debezium's form
        source["sequence"] = json.dumps(source.pop("seq"))
    value = {"op": "c", "before": None, "after": {"id": number, "text": "a\nb\ud800"}, "source": source}
    return Change("shop.shop.t", 1, 10 + number, {"id": number}, value)


def events(api: TestClient, query: str = "") -> list[dict[str, str]]:
    answer = api.get(f"/pipelines/shop/events?{query}")
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith("text/event-stream")
    parts = [part for part in answer.text.split("\n\n") if part and not part.startswith(":")]
    return [dict(line.split(": ", 1) for line in part.splitlines()) for part in parts]  # type: ignore[misc]


@pytest.fixture
def api(served: Served, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    monkeypatch.setattr(tail, "silent", lambda *_: ())  # there is no broker to ask
    served.put("shop")
    served.run().wait(lambda: served.supervisor.units())
    with TestClient(application(served.supervisor, Tokens([], [])), base_url="http://127.0.0.1:8180") as made:
        yield made


def test_changes_come_with_their_place_until_the_limit(api: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def changes(pipeline: Any, wanted: Any, beginning: bool, *_: Any) -> Iterator[Change]:
        asked.append((pipeline.name, wanted("shop", "t"), wanted("shop", "u"), beginning))
        yield from (change(number) for number in range(100))

    monkeypatch.setattr(tail, "changes", changes)
    monkeypatch.setattr(tail, "silent", lambda pipeline, patterns: (f"nothing of {one} yet" for one in patterns))
    told, *found = events(api, "table=shop.t&limit=3&from_beginning=true")
    assert (told["event"], json.loads(told["data"])) == ("waiting", {"message": "nothing of shop.t yet"})
    assert asked == [("shop", True, False, True)]
    assert [one["event"] for one in found] == ["change", "change", "change", "end"]
    assert found[1]["id"] == "0.3.400.1.0"
    assert json.loads(found[1]["data"])["after"] == {"id": 1, "text": "a\nb\ud800"}


def test_a_read_ends_with_its_time(api: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def changes(pipeline: Any, wanted: Any, beginning: bool, stopping: Any, tell: Any) -> Iterator[Change]:
        tell("Kafka does not answer")
        while not stopping():
            pass
        yield from ()

    monkeypatch.setattr(tail, "changes", changes)
    assert [one["event"] for one in events(api, "seconds=1")] == ["waiting", "end"]


def test_an_error_is_an_event_with_its_next_step(api: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def changes(*_: Any) -> Iterator[Change]:
        raise BrokerUnreachableError("reading", "Kafka", "nobody answers", "Start the broker.")
        yield

    monkeypatch.setattr(tail, "changes", changes)
    [found] = events(api)
    assert found["event"] == "problem"
    assert json.loads(found["data"]) == {
        "kind": "broker_unreachable", "cause": "nobody answers", "next_step": "Start the broker."
    }  # fmt: skip


def test_only_so_many_read_at_once_and_places_are_given_back(
    api: TestClient, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "changes", lambda *_: (change(number) for number in (1,)))
    for _ in range(tailing.AT_ONCE + 2):
        assert len(events(api)) == 2
    pipeline = served.supervisor.unit("shop").found.pipeline
    assert pipeline is not None
    held = [tailing._free.acquire(blocking=False) for _ in range(tailing.AT_ONCE)]
    try:
        assert api.get("/pipelines/shop/events").json()["kind"] == "conflict"
    finally:
        for one in held:
            if one:
                tailing._free.release()


def free_places() -> int:
    held = [tailing._free.acquire(blocking=False) for _ in range(tailing.AT_ONCE)]
    for one in held:
        if one:
            tailing._free.release()
    return sum(held)


def wait_for_all_places(seconds: float = 10) -> None:
    until = time.monotonic() + seconds
    while free_places() < tailing.AT_ONCE:
        assert time.monotonic() < until, f"{free_places()} of {tailing.AT_ONCE} places are free"
        time.sleep(0.05)


def endless(*_: Any) -> Iterator[Change]:
    return (change(number) for number in itertools.count())


def test_a_reader_that_is_gone_before_its_first_event_gives_its_place_back(
    api: TestClient, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the server tells it: the client has gone when the answer is to begin."""
    monkeypatch.setattr(tail, "changes", endless)
    scope = {
        "type": "http", "asgi": {"spec_version": "2.3"}, "method": "GET", "path": "/pipelines/shop/events",
        "query_string": b"seconds=3600&limit=10000", "headers": [(b"host", b"127.0.0.1:8180")],
        "scheme": "http", "server": ("127.0.0.1", 8180), "client": ("127.0.0.1", 1),
    }  # fmt: skip

    async def receive() -> dict[str, Any]:
        return {"type": "http.disconnect"}

    async def send(_: Any) -> None:
        await asyncio.sleep(30)

    asyncio.run(application(served.supervisor, Tokens([], []))(scope, receive, send))  # type: ignore[arg-type]
    wait_for_all_places()


def test_a_reader_that_does_not_read_gives_its_place_back_after_its_time(
    api: TestClient, served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tail, "changes", endless)
    monkeypatch.setattr(tailing, "GRACE_SECONDS", 0.2)
    pipeline = served.supervisor.unit("shop").found.pipeline
    assert pipeline is not None
    slow = tailing.Tail(pipeline, "*.*", False, 10_000, 0.2)
    assert free_places() == tailing.AT_ONCE - 1
    wait_for_all_places()

    async def rest() -> int:
        return len([event async for event in slow.events()])

    assert asyncio.run(rest()) >= tailing.AHEAD  # and the read has an end


def test_what_is_no_table_is_refused(api: TestClient, served: Served) -> None:
    assert api.get("/pipelines/shop/events?table=nonsense").status_code == 422
    assert api.get("/pipelines/shop/events?limit=0").status_code == 422
    assert api.get("/pipelines/nope/events").status_code == 404
    wrong = served.folder / "wrong.yaml"
    wrong.write_text(text("wrong").replace("tables:", "tabels:"))
    served.wait(lambda: len(served.supervisor.units()) == 2)
    assert api.get("/pipelines/wrong/events").json()["kind"] == "pipeline_file"
