"""The DAGs of a pipeline file. `dags(pipeline)` is all that a DAG file calls.

How to drive them from outside, by Airflow's REST API (`POST /api/v2/dags/<dag>/dagRuns`, then `GET` of the run
until its state is `success` or `failed`; `GET .../taskInstances/<task>/xcomEntries/return_value` has the result):

| DAG                     | body                                                     | tasks, in order           |
|-------------------------|----------------------------------------------------------|---------------------------|
| `<pipeline>.topics`     | `{"logical_date": null}`                                 | provision                 |
| `<pipeline>.snapshot`   | `{"logical_date": null, "conf": {"tables": ["db.table"]}}` | stage, ..., applied |
| `<pipeline>.compaction` | `{"logical_date": null}`                                 | compact                   |
| `<pipeline>.quality`    | `{"logical_date": null, "conf": {"tables": ["db.table"]}}` | verify                  |
| `<pipeline>.maintenance` | `{"logical_date": null, "conf": {"steps": ["vacuum"]}}` | maintain                  |
| `<pipeline>.erase`      | `{"logical_date": null, "conf": {"table": "db.table", "keys": ["7"]}}` | erase       |
| `<pipeline>.repair`     | `{"logical_date": null, "conf": {"tables": ["db.table"]}}` | stage, ..., applied, verify |
| `<pipeline>.backfill`   | as repair, with `"source": "changes"`                    | as repair                 |

`conf` may be left out, but for `erase` and `backfill`: all tables. Repair and backfill may have `keys`, or `from` and
`to`, of one table, a backfill `since` and `until` too. `keys` is a list of texts: of each key its value, or where it
has several columns the JSON of an object of them (`{"region": "eu", "n": 7}`). A name in `conf` that the DAG's form
does not have fails the run (run_conf.py); `topics` and `compaction` take none. Where compaction has no schedule,
`streamed` and `compact` come between `stage` and `applied`, and `waits`, `streamed`, `compact` run beside `verify`:
both need a compaction, and start it. One that fails fails `applied` alone, where that then lacks what was staged. A
`verify` that is tried again, or cleared, compacts by itself. Where `stage` could have some of the tables alone, the
tasks behind it go on with those, and `all_staged`, beside them, fails with the others.
Results (XCom `return_value`): `provision` gives `created, as_wanted, differing`; `stage`, `compact`, `verify`,
`maintain` and `erase` the report of their Spark job (contract/jobs.py), a failed one too. A failed check fails
`verify`.

DAGs without a schedule are active at once, so that a triggered run does not wait unseen; scheduled ones begin
as Airflow is set (`dags_are_paused_at_creation`), and `PATCH /api/v2/dags/<dag> {"is_paused": false}` starts them.
`compact` and `erase` take the one slot of the lake's pool (pools.py). `verify` does not: it waits for a compaction.
Nor does `maintain`: its job has the lake for one table at a time, and a compaction goes in between
(spark/lake/slot.py).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import DAG, Asset, BaseOperator

from contract import cron
from contract.pipeline import Pipeline
from headrace import forms, guides
from headrace.alerts import Alert, AllClear
from headrace.compacting import CompactNow
from headrace.pools import pool_of
from headrace.rereading import RereadStale
from headrace.spark_job import SparkJob
from headrace.topics import ProvisionTopics
from headrace.waiting import PATIENCE, AllStaged, CheckWaits, PartsApplied, SnapshotApplied, StreamerPassed

START = datetime(2026, 1, 1, tzinfo=UTC)  # fixed, so that a parse is the same at any time; catchup is off

# The job takes a name with a comma for two: where there is one, all tables are proven.
MENDED = (
    "{% set names = ti.xcom_pull(task_ids='stage').tables | list %}{{ names | join(',') if ',' not in names | join }}"
)


def dags(pipeline: Pipeline) -> list[DAG]:
    make = [_topics, _snapshot, _compaction, _quality, _maintenance, _erase]
    mending = _mending(pipeline, "repair", forms.REPAIR), _mending(pipeline, "backfill", forms.BACKFILL)
    made = [*(one(pipeline) for one in make), *mending]
    for task in (task for dag in made for task in dag.tasks):
        if isinstance(task, BaseOperator):  # none of these is mapped, whose pages cannot be set
            task.doc_md = guides.of_task(task.task_id)
    return made


def _dag(pipeline: Pipeline, purpose: str, schedule: str | None, **kwargs: Any) -> DAG:
    return DAG(
        dag_id=f"{pipeline.name}.{purpose}",
        schedule=schedule,
        start_date=START,
        catchup=False,
        max_active_runs=1,  # a purpose has one run at a time: the lake has one writer
        is_paused_upon_creation=None if schedule else False,
        tags=["headrace", pipeline.name, purpose],
        description=guides.line(purpose, pipeline),
        doc_md=guides.of(purpose, pipeline),
        default_args={
            "owner": "headrace",
            "on_failure_callback": Alert(str(pipeline.path)),
            "on_success_callback": AllClear(str(pipeline.path)),
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
    file, form = str(pipeline.path), forms.SNAPSHOT
    with _dag(pipeline, "snapshot", None, params=form.params) as dag:
        stage = SparkJob(
            task_id="stage",
            job="snapshot",
            name=f"headrace-{pipeline.name}-snapshot",
            pipeline_file=file,
            tables=form.tables,
            options=form.options,
            partly=True,
        )
        stage >> AllStaged(task_id="all_staged", stage="stage")
        applied = SnapshotApplied(task_id="applied", stage="stage", **_waits(pipeline))
        if pipeline.compaction.schedule:
            stage >> applied
        else:
            streamed = StreamerPassed(task_id="streamed", pipeline_file=file, stage="stage")
            stage >> streamed >> _compact_now(pipeline) >> applied
    return dag


def _compact_now(pipeline: Pipeline, task_id: str = "compact") -> CompactNow:
    return CompactNow(task_id=task_id, compaction=_own_compaction(pipeline))


def _waits(pipeline: Pipeline) -> dict[str, Any]:
    """For the lake: where a schedule compacts it, until the next run, and as long as that may take."""
    until = cron.longest_seconds(pipeline.compaction.schedule)
    facts = {"pipeline_file": str(pipeline.path), "compaction": _own_compaction(pipeline)}
    return {**facts, "patience_seconds": until + PATIENCE}


def _own_compaction(pipeline: Pipeline) -> str:
    """The DAG of which a run that needs a compaction starts one; empty where a schedule does."""
    return "" if pipeline.compaction.schedule else f"{pipeline.name}.compaction"


def lake_asset(pipeline: Pipeline) -> Asset:
    """The lake's tables of a pipeline: updated by each compaction, so that other DAGs can follow them."""
    return Asset(name=f"{pipeline.name}.lake", uri=f"headrace://{pipeline.name}/lake")


def _compaction(pipeline: Pipeline) -> DAG:
    with _dag(pipeline, "compaction", pipeline.compaction.schedule) as dag:
        compact = SparkJob(
            task_id="compact",
            job="compact",
            name=f"headrace-{pipeline.name}-compaction",
            pipeline_file=str(pipeline.path),
            outlets=[lake_asset(pipeline)],
            pool=pool_of(pipeline.name),
        )
        if pipeline.snapshot.reread_stale:  # also where a table is stopped, which fails the run: the same may mend it
            compact >> _reread(pipeline)
    return dag


def _reread(pipeline: Pipeline, **of: str) -> RereadStale:
    """A teardown: by any other task at its end a run would count as good, whatever failed before it."""
    reread = RereadStale(task_id="reread", pipeline=pipeline.name, **of)
    reread.as_teardown()
    return reread


def _compacted(pipeline: Pipeline, again: str, wait: int) -> tuple[CheckWaits, CompactNow]:
    """The tasks that compact when the check waits for the nth time: the first of them and the last."""
    waits = CheckWaits(task_id=f"waits{again}", check="verify", wait=wait)
    streamed = StreamerPassed(task_id=f"streamed{again}", pipeline_file=str(pipeline.path), stage=waits.task_id)
    compact = _compact_now(pipeline, f"compact{again}")
    waits >> streamed >> compact
    return waits, compact


def _compacts_again(pipeline: Pipeline) -> dict[str, str]:
    """An option of a check. Tried again it compacts by itself: what does that for its first try has run by then."""
    return {} if pipeline.compaction.schedule else {"compact": "{{ 'yes' if ti.try_number > 1 else '' }}"}


def _mending(pipeline: Pipeline, purpose: str, form: forms.Form) -> DAG:
    """Makes a part of a table anew, and proves the table."""
    file, scheduled = str(pipeline.path), pipeline.compaction.schedule
    with _dag(pipeline, purpose, None, params=form.params) as dag:
        stage = SparkJob(
            task_id="stage",
            job=purpose,
            name=f"headrace-{pipeline.name}-{purpose}",
            pipeline_file=file,
            tables=form.tables,
            options={**form.options, "by": "{{ run_id }}"},
            partly=True,
        )
        stage >> AllStaged(task_id="all_staged", stage="stage")
        applied = PartsApplied(task_id="applied", stage="stage", **_waits(pipeline))
        verify = SparkJob(
            task_id="verify",
            job="verify",
            name=f"headrace-{pipeline.name}-quality",
            pipeline_file=file,
            tables=MENDED,
            options={"whole": "yes", **_compacts_again(pipeline)},
        )
        if scheduled:
            stage >> applied >> verify
        else:
            streamed = StreamerPassed(task_id="streamed", pipeline_file=file, stage="stage")
            stage >> streamed >> _compact_now(pipeline) >> applied >> verify
            first, second = _compacted(pipeline, "_proof", 1), _compacted(pipeline, "_proof_again", 2)
            applied >> first[0]
            first[1] >> second[0]
    return dag


def _quality(pipeline: Pipeline) -> DAG:
    file, form = str(pipeline.path), forms.QUALITY
    with _dag(pipeline, "quality", pipeline.quality.schedule, params=form.params) as dag:
        verify = SparkJob(
            task_id="verify",
            job="verify",
            name=f"headrace-{pipeline.name}-quality",
            pipeline_file=file,
            tables=form.tables,
            options={**form.options, **_compacts_again(pipeline)},
        )
        if not pipeline.compaction.schedule:  # else nothing would take the lake to where the check compares
            # A check waits for the second time where it has found a difference, and read the rows in question.
            _compacted(pipeline, "", 1)[1] >> _compacted(pipeline, "_again", 2)[0]
            if pipeline.snapshot.reread_stale:  # of `headrace compact --loop` no task has a report: the check has one
                verify >> _reread(pipeline, of="verify")
    return dag


def _maintenance(pipeline: Pipeline) -> DAG:
    with _dag(pipeline, "maintenance", pipeline.maintenance.schedule, params=forms.MAINTENANCE.params) as dag:
        _job(pipeline, "maintain", "maintenance", forms.MAINTENANCE)
    return dag


def _erase(pipeline: Pipeline) -> DAG:
    with _dag(pipeline, "erase", None, params=forms.ERASE.params) as dag:
        _job(pipeline, "erase", "erase", forms.ERASE, pool=pool_of(pipeline.name))
    return dag


def _job(pipeline: Pipeline, job: str, purpose: str, form: forms.Form, **more: Any) -> SparkJob:
    """A job that writes the lake's tables itself."""
    return SparkJob(
        task_id=job,
        job=job,
        name=f"headrace-{pipeline.name}-{purpose}",
        pipeline_file=str(pipeline.path),
        tables=form.tables,
        options=form.options,
        **more,
    )
