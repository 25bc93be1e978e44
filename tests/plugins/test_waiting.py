"""The deferred waits: asked until nothing is missing, with an end to the patience, and telling what was missing."""

from __future__ import annotations

import asyncio
import time
from typing import Any
from unittest.mock import MagicMock

import pytest
from airflow.sdk.exceptions import AirflowFailException, AirflowSkipException, TaskDeferred
from airflow.serialization.serialized_objects import BaseSerialization

from contract.status import PartStatus
from headrace import progress, waiting
from headrace.waiting import CheckWaits, PartsApplied, SnapshotApplied, Until

REPORT = {"snapshot": "s1", "p1": "", "tables": {}}


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the question answers, one after the other; an exception is raised."""
    given: list[Any] = []

    def ask(_file: str, _report: dict[str, Any]) -> str | None:
        answer = given.pop(0) if len(given) > 1 else given[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setitem(progress.QUESTIONS, "snapshot applied", ask)
    monkeypatch.setattr(waiting, "POLL_SECONDS", 0.01)
    return given


def event_of(trigger: Until) -> dict[str, Any]:
    async def first() -> dict[str, Any]:
        async for event in trigger.run():
            return event.payload
        raise AssertionError("the trigger ended without an event")

    return asyncio.run(asyncio.wait_for(first(), 10))


def test_it_asks_until_nothing_is_missing(answers: list[Any]) -> None:
    answers += ["not yet", progress.CannotTellError("half written"), "not yet", None]
    assert event_of(Until("snapshot applied", "/p", REPORT, time.time() + 60)) == {"missing": None}
    assert answers == [None]


def test_patience_ends_and_tells_what_was_missing(answers: list[Any]) -> None:
    answers += ["shop.a is not there"]
    assert event_of(Until("snapshot applied", "/p", REPORT, time.time() - 1)) == {"missing": "shop.a is not there"}
    wait = SnapshotApplied(task_id="t", pipeline_file="/p", stage="stage", patience_seconds=7)
    with pytest.raises(AirflowFailException, match="not done after 7 s: shop"):
        wait.resume({"ti": behind("", None)}, {"missing": "shop.a is not there"})


def test_what_is_done_already_is_not_waited_for(answers: list[Any]) -> None:
    """Airflow's scheduler takes a task for failed that was deferred and goes on before it has heard of that."""
    answers += [None]
    wait = SnapshotApplied(task_id="t", pipeline_file="/p", stage="stage")
    ti = MagicMock()
    ti.xcom_pull.return_value = REPORT
    assert wait.execute({"ti": ti}) == wait.done
    answers[:] = ["not yet"]
    with pytest.raises(TaskDeferred):
        wait.execute({"ti": ti})


def test_the_wait_is_deferred_and_survives_a_restart_of_the_triggerer() -> None:
    wait = SnapshotApplied(task_id="t", pipeline_file="/p", stage="stage")
    ti = MagicMock()
    ti.xcom_pull.return_value = REPORT
    with pytest.raises(TaskDeferred) as deferred:
        wait.execute({"ti": ti})
    path, arguments = deferred.value.trigger.serialize()
    assert path == f"{Until.__module__}.{Until.__qualname__}"
    assert BaseSerialization.deserialize(BaseSerialization.serialize(arguments)) == arguments
    assert Until(**arguments).deadline == pytest.approx(time.time() + 3600, abs=60)


def behind(state: str, report: dict[str, Any] | None) -> Any:
    """A task instance behind a compaction that it started: how its run ended, and its report."""
    given = {"stage": REPORT, "trigger_run_id": "manual__1", "crm.compaction manual__1 compact": report}

    def xcom_pull(task_ids: str, key: str = "", dag_id: str = "", run_id: str = "") -> Any:
        return given[key or (f"{dag_id} {run_id} {task_ids}" if dag_id else task_ids)]

    ti = MagicMock()
    ti.xcom_pull.side_effect = xcom_pull
    ti.get_dagrun_state.side_effect = lambda dag_id, run_id: {"crm.compaction manual__1": state}[f"{dag_id} {run_id}"]
    return ti


@pytest.mark.parametrize(
    ("state", "report", "patience", "told"),
    [
        ("success", {"tables": {}}, 3600, "not done after 3600 s: shop.b is missing"),
        ("failed", {"tables": {"shop.b": {}}, "error": "shop.b: no key"}, 60, "not done after 60 s: shop.b is missing"),
        (
            "failed", {"error": "no lake at s3a://b"}, 60,
            "not done after 60 s: shop.b is missing. The compaction failed: no lake at s3a://b",
        ),
        (
            "failed", None, 60,
            "not done after 60 s: shop.b is missing. The compaction failed: see the run manual__1 of crm.compaction",
        ),
    ],
)  # fmt: skip
def test_behind_a_compaction_that_failed_the_wait_is_short_and_says_why(
    state: str, report: dict[str, Any] | None, patience: int, told: str
) -> None:
    """What is there of it by then is enough; of a table that is stopped the question itself tells it."""
    wait = SnapshotApplied(task_id="t", pipeline_file="/p", stage="stage", compaction="crm.compaction")
    ti = behind(state, report)
    with pytest.raises(TaskDeferred) as deferred:
        wait.execute({"ti": ti})
    assert deferred.value.trigger.deadline == pytest.approx(time.time() + patience, abs=20)
    with pytest.raises(AirflowFailException, match=f"^{told}$"):
        wait.resume({"ti": ti}, {"missing": "shop.b is missing"})
    assert wait.resume({"ti": ti}, {"missing": None}) == SnapshotApplied.done


def test_without_the_report_of_the_stage_there_is_nothing_to_wait_for() -> None:
    ti = MagicMock()
    ti.xcom_pull.return_value = None
    with pytest.raises(AirflowFailException, match="the task stage left no report"):
        SnapshotApplied(task_id="t", pipeline_file="/p", stage="stage").execute({"ti": ti})


def test_parts_that_were_refused_fail_the_wait_and_nothing_to_wait_for_skips_what_follows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ti = MagicMock()
    ti.xcom_pull.return_value = {"p1": "", "parts": {}}
    wait = PartsApplied(task_id="t", pipeline_file="/p", stage="stage")
    with pytest.raises(AirflowSkipException):
        wait.execute({"ti": ti})
    told = [PartStatus(db="shop", table="a", job="repair", at=1, rows={"missing": 2})]
    monkeypatch.setattr(progress, "parts", lambda file, report: told)
    assert wait.resume({"ti": ti}, {"missing": None}) == "the lake has the rows"
    told.append(PartStatus(db="shop", table="b", job="repair", at=1, refused="shop.b: read anew"))
    with pytest.raises(AirflowFailException, match=r"^shop\.b: read anew$"):
        wait.resume({"ti": ti}, {"missing": None})


def poke(waits_for: str | None, state: str, wait: int = 1) -> Any:
    """`waits_for`: at its first wait."""
    ti = MagicMock(dag_id="shop.quality", run_id="r")
    ti.xcom_pull.side_effect = lambda task_ids, key: {"waits_for_1": waits_for}.get(key)
    ti.get_task_states.return_value = {"r": {"verify": state}}
    return CheckWaits(task_id="t", check="verify", wait=wait).poke({"ti": ti})


def test_a_compaction_is_started_when_the_check_waits_for_it_and_only_then() -> None:
    assert not poke(None, "running").is_done
    done = poke("uuid:1-5", "running")
    assert done.is_done
    assert done.xcom_value == {"p1": "uuid:1-5"}
    assert not poke("uuid:1-5", "running", wait=2).is_done, "it has not waited for the second time"
    for state in ("success", "failed"):
        with pytest.raises(AirflowSkipException):
            poke(None, state)
