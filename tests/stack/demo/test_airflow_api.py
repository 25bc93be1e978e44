"""The demo's way to Airflow: what a person is told when Airflow says no, or a run fails."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import httpx
import pytest

from stack.demo import airflow_api
from stack.demo.airflow_api import Airflow, Run
from stack.errors import StackError

RUN = {"dag_id": "flights.quality", "dag_run_id": "r1", "start_date": "2026-01-01T00:00:00Z", "end_date": None}


def airflow(answers: dict[str, Any]) -> Airflow:
    """An Airflow that answers paths (by their end) with the JSON given, or with a status and a text."""

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/auth/token":
            return httpx.Response(201, json={"access_token": "t"})
        assert request.headers["Authorization"] == "Bearer t"
        found = next(
            (value for end, value in answers.items() if request.url.path.endswith(end)), (404, "no such thing")
        )
        found = found() if isinstance(found, Callable) else found  # type: ignore[arg-type]
        return httpx.Response(found[0], text=found[1]) if isinstance(found, tuple) else httpx.Response(200, json=found)

    return Airflow("http://airflow", httpx.MockTransport(answer))


def test_a_run_is_followed_to_its_end() -> None:
    states = iter(["running", "success"])
    server = airflow({"/dagRuns/r1": lambda: {**RUN, "state": next(states)}})
    seen: list[str] = []
    ended = server.wait(Run("flights.quality", "r1", "queued", 0.0), 10, lambda run: seen.append(run.state))
    assert ended.state == "success"
    assert seen == ["running", "success"]


def test_a_failed_run_names_its_task_what_it_said_and_where_to_read() -> None:
    server = airflow(
        {
            "/dagRuns/r1": {**RUN, "state": "failed"},
            "/taskInstances": {"task_instances": [{"task_id": "verify", "state": "failed"}]},
            "/return_value": {"value": {"error": "flights differs by 3 rows"}},
        }
    )
    with pytest.raises(StackError) as caught:
        server.wait(Run("flights.quality", "r1", "queued", 0.0), 10)
    assert "flights.quality failed in its task verify (flights differs by 3 rows)" in str(caught.value)
    assert "http://airflow/dags/flights.quality/runs/r1" in str(caught.value)


def test_a_task_that_is_to_be_tried_again_says_why() -> None:
    states = {"prepare": "success", "verify": "up_for_retry", "publish": None}
    server = airflow(
        {
            "/taskInstances": {"task_instances": [{"task_id": name, "state": state} for name, state in states.items()]},
            "/return_value": {"value": {"error": "the lake is not complete yet"}},
        }
    )
    told = server.under_way(Run("flights.quality", "r1", "running", 0.0))
    assert told == ["verify up_for_retry (the lake is not complete yet)", "publish waiting"]


def test_a_refusal_is_told_without_a_traceback() -> None:
    with pytest.raises(StackError, match=r"refused to trigger flights.topics: 409 running already"):
        airflow({"/dagRuns": (409, "running already")}).trigger("flights.topics")


def test_a_task_that_returned_nothing_has_no_result() -> None:
    assert airflow({}).result(Run("flights.quality", "r1", "success", 0.0), "verify") is None


def test_dags_that_do_not_come_are_named_with_the_import_error() -> None:
    server = airflow({"/importErrors": {"import_errors": [{"filename": "x.py", "stack_trace": "2 mistakes"}]}})
    with pytest.raises(StackError, match=r"has not read flights.topics within 0 s. x.py: 2 mistakes"):
        server.wait_for(["flights.topics"], seconds=0)


def slow(times: int, path: str, error: type[httpx.TransportError]) -> tuple[Airflow, list[str]]:
    """An Airflow of which the first `times` questions at the path have no answer; all that it was asked there."""
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        if request.url.path.endswith(path):
            asked.append(request.method)
            if len(asked) <= times:
                raise error("timed out", request=request)
        given = {"access_token": "t", "task_instances": [{"task_id": "verify", "state": "running"}]}
        return httpx.Response(200, json=given)

    return Airflow("http://airflow", httpx.MockTransport(answer)), asked


@pytest.mark.parametrize("error", [httpx.ReadTimeout, httpx.ConnectError, httpx.RemoteProtocolError])
@pytest.mark.parametrize("path", ["/taskInstances", "/auth/token"])
def test_a_question_without_an_answer_is_asked_again(
    error: type[httpx.TransportError], path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One slow answer ended the demo, a quarter of an hour in."""
    monkeypatch.setattr(airflow_api, "POLL_SECONDS", 0.0)
    server, asked = slow(3, path, error)
    assert server.under_way(Run("flights.quality", "r1", "running", 0.0)) == ["verify running"]
    assert asked == ["GET"] * 4


def test_an_airflow_that_never_answers_is_told_so_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(airflow_api, "POLL_SECONDS", 0.0)
    monkeypatch.setattr(airflow_api, "PATIENCE_SECONDS", 0.05)
    server, asked = slow(10**6, "/taskInstances", httpx.ReadTimeout)
    with pytest.raises(StackError, match=r"did not answer, asked to read .*/taskInstances: timed out"):
        server.tasks(Run("flights.quality", "r1", "running", 0.0))
    assert len(asked) > 1


def test_what_changes_something_is_asked_once() -> None:
    server, asked = slow(1, "/dagRuns", httpx.ReadTimeout)
    with pytest.raises(StackError, match=r"did not answer, asked to trigger flights\.topics: timed out"):
        server.trigger("flights.topics")
    assert asked == ["POST"]
