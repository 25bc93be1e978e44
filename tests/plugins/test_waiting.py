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
        wait.resume({}, {"missing": "shop.a is not there"})


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
