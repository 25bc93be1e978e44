"""What happens when a task fails, and when it goes well again: the notifiers of every task of a pipeline's DAGs.

It logs, keeps one JSON line (quality/folder.py), and POSTs the same JSON to the pipeline's `quality.webhook`
where there is one. An alert that cannot be delivered is logged and never hides the failure itself. A task that fails
again and again for one reason is posted once: anew when the text differs, when the webhook did not take it, when the
task had not failed for an hour, or when what failed was well in between. An alert says since when each table is at
fault, which ones are well again, and what to do next. The first success behind a failure says all clear, in the same
three places.

What is at fault is known by the checks of a pipeline, whichever DAG they are of: a repair's proof clears what it
proves (earlier.py, standing.py).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from airflow.sdk import BaseNotifier

from contract.pipeline import Pipeline, PipelineFileError
from headrace import pipeline_files, webhook
from headrace.earlier import earlier
from headrace.next_step import next_step
from headrace.standing import at_fault, looked_at, standing
from quality import folder
from quality.report import differences


class Alert(BaseNotifier):
    """`on_failure_callback=Alert(pipeline_file)`."""

    def __init__(self, pipeline_file: str) -> None:
        super().__init__()
        self.pipeline_file = pipeline_file

    def notify(self, context: Any) -> None:
        alert = describe(context)
        self.log.error("ALERT %s %s: %s", alert["dag"], alert["task"], alert["message"])
        for table, difference in alert["tables"].items():
            self.log.error("ALERT %s: %s", table, difference)
        try:
            pipeline = pipeline_files.load(self.pipeline_file)
        except PipelineFileError as error:
            self.log.error("the alert was not kept, since the pipeline file is wrong: %s", error)
            return
        before = earlier(pipeline, alert)
        alert["next_step"] = next_step(context.get("exception"), alert["task"], pipeline.name)
        self.log.error("next step: %s", alert["next_step"])
        alert |= standing(alert, _result(context), at_fault(before.newest))
        for table in alert["mended"]:
            self.log.info("ALL CLEAR %s", table)
        keep(self.log, pipeline, {"pipeline": pipeline.name, **alert}, before.has(alert))


class AllClear(BaseNotifier):
    """`on_success_callback=AllClear(pipeline_file)`: says so once, where the task had failed before; of a check of some
    tables, of those alone."""

    def __init__(self, pipeline_file: str) -> None:
        super().__init__()
        self.pipeline_file = pipeline_file

    def notify(self, context: Any) -> None:
        clear = {"at": _now(), **_task(context)}
        try:
            pipeline = pipeline_files.load(self.pipeline_file)
        except PipelineFileError:
            return  # told by whoever reads the file for its work
        last = earlier(pipeline, clear).newest
        if last is None or last.get("clear"):
            return
        since, report = at_fault(last), _report(context)
        left = {table: at for table, at in since.items() if not looked_at(report, table)}
        mended = {table: at for table, at in since.items() if table not in left}
        if left and not mended:
            self.log.info("not looked at, and at fault since it was: %s", ", ".join(left))
            return
        named = f": {', '.join(mended)}" if mended else ""
        still = f"; not looked at, and at fault since it was: {', '.join(left)}" if left else ""
        tables = {table: f"all clear, at fault since {at}" for table, at in mended.items()}
        clear |= {"clear": not left, "message": f"all clear{named}{still}", "tables": tables, "since": left or since}
        self.log.info("ALL CLEAR %s %s%s", clear["dag"], clear["task"], named)
        keep(self.log, pipeline, {"pipeline": pipeline.name, **clear, "mended": [*mended]})


def keep(log: Any, pipeline: Pipeline, alert: dict[str, Any], posted: bool = False) -> None:
    """Posts it, unless that was done, and writes it down."""
    url = pipeline.quality.webhook
    alert["posted"] = posted or (bool(url) and webhook.took(log, str(url), alert))
    try:
        log.info("kept in %s", folder.append_alert(pipeline, alert))
    except OSError as error:
        log.error("the alert was not kept in %s: %s", folder.folder(pipeline), error)


def describe(context: Any) -> dict[str, Any]:
    """`at, dag, task, run, log, message, tables` of the failed task; `tables`: `db.table` -> difference."""
    error = context.get("exception")
    told = {"message": str(error) if error else "failed", "tables": differences(_result(context))}
    return {"at": _now(), **_task(context), **told}


def _task(context: Any) -> dict[str, Any]:
    ti = context["ti"]
    return {"dag": ti.dag_id, "task": ti.task_id, "run": ti.run_id, "log": getattr(ti, "log_url", None)}


def _result(context: Any) -> dict[str, Any]:
    """The report of the job that failed, where there is one."""
    return getattr(context.get("exception"), "result", None) or {}


def _report(context: Any) -> dict[str, Any]:
    """That of the job that went well."""
    told = context["ti"].xcom_pull(task_ids=context["ti"].task_id)
    return told if isinstance(told, dict) else {}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
