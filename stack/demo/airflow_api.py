"""Airflow's REST API as the demo needs it: switch a DAG on, trigger it, follow its run, take its result."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from typing import Any, NamedTuple

import httpx
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from stack.errors import StackError

ENDED = ("success", "failed")
AGAIN = "up_for_retry"
POLL_SECONDS = 1.0
PATIENCE_SECONDS = 120.0  # a small machine's Airflow, beside Spark, may answer late or start a worker anew
TOKEN_SECONDS = 1800.0  # Airflow's tokens live a day; a fresh one now and then costs nothing


class Run(NamedTuple):
    """A DAG run. `state`: queued, running, success or failed. `seconds`: from start to end, or to now."""

    dag: str
    id: str
    state: str
    seconds: float


class Task(NamedTuple):
    name: str
    state: str


class Airflow:
    """The server at `url` (`http://127.0.0.1:28080`). Every call raises StackError where it is refused, or
    nobody answers; what only reads is asked again before."""

    def __init__(self, url: str, transport: httpx.BaseTransport | None = None) -> None:
        self.url = url
        road = transport or httpx.HTTPTransport(retries=3)
        self._http = httpx.Client(base_url=url, timeout=30.0, transport=road)
        self._token_until = 0.0

    def wait_for(self, dags: list[str], seconds: float = 90.0) -> None:
        """Waits until Airflow has read the DAGs."""
        deadline = time.monotonic() + seconds
        while missing := [dag for dag in dags if self._known(dag) is None]:
            if time.monotonic() > deadline:
                broken = self._get("/api/v2/importErrors")["import_errors"]
                told = "; ".join(f"{error['filename']}: {error['stack_trace']}" for error in broken)
                raise StackError(
                    f"Airflow has not read {', '.join(missing)} within {seconds:.0f} s. {told}".strip(),
                    "Read Airflow's log: `python -m stack logs airflow`.",
                )
            time.sleep(POLL_SECONDS)

    def _known(self, dag: str) -> Any:
        with self._calling(f"show {dag}"):
            answer = self._got(f"/api/v2/dags/{dag}")
            return None if answer.status_code == 404 else self._json(answer)

    def pause(self, dag: str, paused: bool) -> None:
        with self._calling(f"switch {dag} {'off' if paused else 'on'}"):
            self._json(self._http.patch(f"/api/v2/dags/{dag}", json={"is_paused": paused}))

    def trigger(self, dag: str, conf: Mapping[str, Any] | None = None) -> Run:
        """`conf`: what a person fills into the DAG's form."""
        with self._calling(f"trigger {dag}"):
            body = {"logical_date": None, "conf": conf or {}}
            answer = self._http.post(f"/api/v2/dags/{dag}/dagRuns", json=body)
            return _run(self._json(answer))

    def run(self, run: Run) -> Run:
        return _run(self._get(f"/api/v2/dags/{run.dag}/dagRuns/{run.id}"))

    def runs(self, dag: str, since: float) -> list[Run]:
        """The runs of a DAG that started after `since` (Unix seconds), oldest first."""
        found = self._get(f"/api/v2/dags/{dag}/dagRuns", order_by="-start_date", limit=20)["dag_runs"]
        return [_run(one) for one in reversed(found) if one["start_date"] and _seconds(one["start_date"]) > since]

    def tasks(self, run: Run) -> list[Task]:
        found = self._get(f"/api/v2/dags/{run.dag}/dagRuns/{run.id}/taskInstances")["task_instances"]
        return [Task(one["task_id"], one["state"] or "waiting") for one in found]

    def under_way(self, run: Run) -> list[str]:
        """The tasks that have not succeeded, each with its state, and why it is to be tried again."""
        busy = [task for task in self.tasks(run) if task.state != "success"]
        return [f"{one.name} {one.state}{self._words(run, one.name) if one.state == AGAIN else ''}" for one in busy]

    def done(self, run: Run, task: str) -> bool:
        return Task(task, "success") in self.tasks(run)

    def result(self, run: Run, task: str) -> Any:
        """What the task returned; None where it has returned nothing."""
        path = f"/api/v2/dags/{run.dag}/dagRuns/{run.id}/taskInstances/{task}/xcomEntries/return_value"
        with self._calling(f"take the result of {run.dag}"):
            answer = self._got(path, stringify=False)
            return None if answer.status_code == 404 else self._json(answer)["value"]

    def wait(self, run: Run, seconds: float, tick: Callable[[Run], None] = lambda run: None) -> Run:
        """Follows a run to its end; raises StackError where it fails or takes too long. `tick` hears each look."""
        deadline = time.monotonic() + seconds
        while run.state not in ENDED:
            if time.monotonic() > deadline:
                raise StackError(f"{run.dag} is {run.state} after {seconds:.0f} s still", f"Look at {self.page(run)}")
            time.sleep(POLL_SECONDS)
            run = self.run(run)
            tick(run)
        if run.state == "failed":
            raise StackError(f"{run.dag} failed in {self._culprit(run)}", f"Its log: {self.page(run)}")
        return run

    def page(self, run: Run) -> str:
        return f"{self.url}/dags/{run.dag}/runs/{run.id}"

    def _culprit(self, run: Run) -> str:
        failed = [task.name for task in self.tasks(run) if task.state == "failed"]
        words = [f"its task {name}{self._words(run, name)}" for name in failed]
        return ", ".join(words) or "no task of its own"

    def _words(self, run: Run, task: str) -> str:
        result = self.result(run, task)
        error = result.get("error") if isinstance(result, dict) else None
        return f" ({error})" if error else ""

    def _get(self, path: str, **params: Any) -> Any:
        with self._calling(f"read {path}"):
            return self._json(self._got(path, **params))

    def _got(self, path: str, **params: Any) -> httpx.Response:
        """Asked again while nobody answers. Raises httpx.HTTPError."""
        patient = Retrying(
            retry=retry_if_exception_type(httpx.TransportError),
            stop=stop_after_delay(PATIENCE_SECONDS),
            wait=wait_fixed(POLL_SECONDS),
            reraise=True,
        )
        return patient(self._http.get, path, params=params)

    @contextmanager
    def _calling(self, what: str) -> Iterator[None]:
        """Has a token in hand, and tells what was refused or had no answer."""
        try:
            if time.monotonic() > self._token_until:
                token = self._json(self._got("/auth/token"))["access_token"]
                self._http.headers["Authorization"] = f"Bearer {token}"
                self._token_until = time.monotonic() + TOKEN_SECONDS
            yield
        except httpx.HTTPError as error:
            said = "did not answer, asked to" if isinstance(error, httpx.TransportError) else "refused to"
            hint = "Read its log: `python -m stack logs airflow`."
            raise StackError(f"Airflow at {self.url} {said} {what}: {error}", hint) from None

    def _json(self, answer: httpx.Response) -> Any:
        if answer.is_error:
            raise httpx.HTTPStatusError(
                f"{answer.status_code} {answer.text[:500]}", request=answer.request, response=answer
            )
        return answer.json()


def _run(found: dict[str, Any]) -> Run:
    began = _seconds(found["start_date"]) if found["start_date"] else time.time()
    ended = _seconds(found["end_date"]) if found["end_date"] else time.time()
    return Run(found["dag_id"], found["dag_run_id"], found["state"], max(0.0, ended - began))


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
