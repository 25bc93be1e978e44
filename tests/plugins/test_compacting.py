"""A compaction that a run started: good enough where it came to its end, tried again where it did not."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any
from unittest.mock import MagicMock

import pytest
from airflow.sdk.exceptions import AirflowException, DagRunTriggerException

from headrace.compacting import CompactNow

STOPPED = {"tables": {"shop.b": {"stopped": "shop.b: no key"}}, "error": "shop.b: no key"}
AWAY = {"error": "no lake at s3a://b"}


def ended(state: str, report: dict[str, Any] | None, tries: int = 1) -> None:
    ti = MagicMock(try_number=tries, max_tries=1)
    ti.get_dagrun_state.side_effect = lambda dag_id, run_id: {("crm.compaction", "r"): state}[dag_id, run_id]
    ti.xcom_pull.return_value = report
    task = CompactNow(task_id="compact", compaction="crm.compaction")
    task.execute_complete({"ti": ti}, ("", {"run_ids": ["r"], "r": state}))


@pytest.mark.parametrize("is_paused", [True, False])
def test_of_a_paused_dag_no_run_is_started_that_would_only_wait(is_paused: bool) -> None:
    ti = MagicMock()
    ti.get_dag.return_value.is_paused = is_paused
    task = CompactNow(task_id="compact", compaction="crm.compaction")
    with nullcontext() if is_paused else pytest.raises(DagRunTriggerException):
        task.execute({"ti": ti, "logical_date": None})
    ti.get_dag.assert_called_with("crm.compaction")


def test_one_that_came_to_its_end_is_good_enough() -> None:
    ended("success", {"tables": {}})
    ended("failed", STOPPED)


@pytest.mark.parametrize(
    ("report", "told"), [(AWAY, "no lake at s3a://b$"), (None, "see the run r of crm.compaction$")]
)
def test_one_that_did_not_is_tried_again_and_then_left_to_what_waits(report: dict[str, Any] | None, told: str) -> None:
    with pytest.raises(AirflowException, match=f"^The compaction failed: {told}"):
        ended("failed", report)
    ended("failed", report, tries=2)
