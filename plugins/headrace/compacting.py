"""The task by which a run has the lake compacted where no schedule does, and how that compaction ended.

A compaction fails for a single table that is stopped, while all others are complete. So one that came to its end is
good enough, one that did not is tried again, and in the end what waits for the lake (waiting.py) tells of the tables
that the run is for.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from airflow.providers.standard.operators.trigger_dagrun import DagIsPaused, TriggerDagRunOperator
from airflow.sdk import DagRunState
from airflow.sdk.exceptions import AirflowException


class Failure(NamedTuple):
    """Of a compaction. `died`: why it did not come to its end; empty where it did: what failed it are stopped tables,
    of which the lake's status says why."""

    died: str = ""


class CompactNow(TriggerDagRunOperator):
    """`compaction`: the DAG. Where that is paused a run of it would only wait, and this one with it: none is started,
    for `headrace compact --loop` may be what takes the lake on."""

    def __init__(self, *, compaction: str, **kwargs: Any) -> None:
        super().__init__(
            trigger_dag_id=compaction,
            wait_for_completion=True,
            deferrable=True,
            poke_interval=3,
            allowed_states=[DagRunState.SUCCESS, DagRunState.FAILED],
            failed_states=[],
            fail_when_dag_is_paused=True,
            **kwargs,
        )

    def execute(self, context: Any) -> None:
        try:
            super().execute(context)
        except DagIsPaused:
            self.log.warning("no compaction is started: %s", paused(self.trigger_dag_id))

    def execute_complete(self, context: Any, event: Any) -> None:
        super().execute_complete(context, event)
        ti = context["ti"]
        failed = failure(ti, self.trigger_dag_id, str(self.trigger_run_id))
        if failed and failed.died and ti.try_number <= ti.max_tries:
            raise AirflowException(failed.died)


def paused(compaction: str) -> str:
    return f"the DAG {compaction} is paused: switch it on, unless `headrace compact --loop` runs"


def failure(ti: Any, compaction: str, run: str) -> Failure | None:
    """Of a run of the DAG; None where it did not fail."""
    if ti.get_dagrun_state(dag_id=compaction, run_id=run) != DagRunState.FAILED:
        return None
    report = ti.xcom_pull(dag_id=compaction, run_id=run, task_ids="compact") or {}
    if report.get("tables"):
        return Failure()
    return Failure(f"The compaction failed: {report.get('error') or f'see the run {run} of {compaction}'}")
