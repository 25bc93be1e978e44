"""The four DAGs of a pipeline file. `dags(pipeline)` is all that a DAG file calls.

How to drive them from outside, by Airflow's REST API (`POST /api/v2/dags/<dag>/dagRuns`, then `GET` of the run
until its state is `success` or `failed`; `GET .../taskInstances/<task>/xcomEntries/return_value` has the result):

| DAG                     | body                                                     | tasks, in order           |
|-------------------------|----------------------------------------------------------|---------------------------|
| `<pipeline>.topics`     | `{"logical_date": null}`                                 | provision                 |
| `<pipeline>.snapshot`   | `{"logical_date": null, "conf": {"tables": ["db.table"]}}` | stage, ..., applied |
| `<pipeline>.compaction` | `{"logical_date": null}`                                 | compact                   |
| `<pipeline>.quality`    | `{"logical_date": null}`                                 | verify                    |

`conf` may be left out: all tables. Where compaction has no schedule, `streamed` and `compact` come between `stage`
and `applied`, and `waits`, `streamed`, `compact` run beside `verify`: both need a compaction, and start it.
Results (XCom `return_value`): `provision` gives `created, as_wanted, differing`; `stage`, `compact` and
`verify` the report of their Spark job (contract/jobs.py), a failed one too. A failed check fails `verify`.

DAGs without a schedule are active at once, so that a triggered run does not wait unseen; scheduled ones begin
as Airflow is set (`dags_are_paused_at_creation`), and `PATCH /api/v2/dags/<dag> {"is_paused": false}` starts them.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.providers.standard.operators.trigger_dagrun import TriggerDagRunOperator
from airflow.sdk import DAG, Asset, Param

from contract.pipeline import Pipeline
from headrace import guides
from headrace.alerts import Alert
from headrace.spark_job import SparkJob
from headrace.topics import ProvisionTopics
from headrace.waiting import CheckWaits, SnapshotApplied, StreamerPassed

START = datetime(2026, 1, 1, tzinfo=UTC)  # fixed, so that a parse is the same at any time; catchup is off
TABLE_NAME = r"^[^.,]+\.[^.,]+$"


def dags(pipeline: Pipeline) -> list[DAG]:
    return [_topics(pipeline), _snapshot(pipeline), _compaction(pipeline), _quality(pipeline)]


def _dag(pipeline: Pipeline, purpose: str, schedule: str | None, **kwargs: Any) -> DAG:
    return DAG(
        dag_id=f"{pipeline.name}.{purpose}",
        schedule=schedule,
        start_date=START,
        catchup=False,
        max_active_runs=1,  # a purpose has one run at a time: the lake has one writer
        is_paused_upon_creation=None if schedule else False,
        tags=["headrace", pipeline.name, purpose],
        description=guides.LINES[purpose],
        doc_md=guides.of(purpose, pipeline),
        default_args={
            "owner": "headrace",
            "on_failure_callback": Alert(str(pipeline.path)),
            "retries": 1,
            "retry_delay": timedelta(seconds=30),
        },
        **kwargs,
    )


def _topics(pipeline: Pipeline) -> DAG:
    with _dag(pipeline, "topics", None) as dag:
        ProvisionTopics(task_id="provision", pipeline_file=str(pipeline.path))
    return dag


def _snapshot(pipeline: Pipeline) -> DAG:
    tables = Param(
        [],
        type="array",
        items={"type": "string", "pattern": TABLE_NAME},
        title="Tables",
        description="Which tables to read again, as db.table, one a line. Empty: all tables of the pipeline.",
    )
    file = str(pipeline.path)
    with _dag(pipeline, "snapshot", None, params={"tables": tables}) as dag:
        stage = SparkJob(
            task_id="stage",
            job="snapshot",
            name=f"headrace-{pipeline.name}-snapshot",
            pipeline_file=file,
            tables="{{ params.tables | join(',') }}",
        )
        applied = SnapshotApplied(task_id="applied", pipeline_file=file, stage="stage")
        if pipeline.compaction.schedule:
            stage >> applied
        else:
            streamed = StreamerPassed(task_id="streamed", pipeline_file=file, stage="stage")
            stage >> streamed >> _compact_now(pipeline) >> applied
    return dag


def _compact_now(pipeline: Pipeline) -> TriggerDagRunOperator:
    return TriggerDagRunOperator(
        task_id="compact",
        trigger_dag_id=f"{pipeline.name}.compaction",
        wait_for_completion=True,
        deferrable=True,
        poke_interval=3,
    )


def lake_asset(pipeline: Pipeline) -> Asset:
    """The lake's tables of a pipeline: updated by each compaction, so that other DAGs can follow them."""
    return Asset(name=f"{pipeline.name}.lake", uri=f"headrace://{pipeline.name}/lake")


def _compaction(pipeline: Pipeline) -> DAG:
    with _dag(pipeline, "compaction", pipeline.compaction.schedule) as dag:
        SparkJob(
            task_id="compact",
            job="compact",
            name=f"headrace-{pipeline.name}-compaction",
            pipeline_file=str(pipeline.path),
            outlets=[lake_asset(pipeline)],
        )
    return dag


def _quality(pipeline: Pipeline) -> DAG:
    file = str(pipeline.path)
    with _dag(pipeline, "quality", pipeline.quality.schedule) as dag:
        SparkJob(
            task_id="verify",
            job="verify",
            name=f"headrace-{pipeline.name}-quality",
            pipeline_file=file,
        )
        if not pipeline.compaction.schedule:  # else nothing would take the lake to where the check compares
            waits = CheckWaits(task_id="waits", check="verify")
            waits >> StreamerPassed(task_id="streamed", pipeline_file=file, stage="waits") >> _compact_now(pipeline)
    return dag
