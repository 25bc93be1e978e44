"""What happens when a task fails, and when it goes well again: the notifiers of every task of a pipeline's DAGs.

It logs, keeps one JSON line (quality/folder.py), and POSTs the same JSON to the pipeline's `quality.webhook`
where there is one, or calls its `quality.notifier` (delivery.py): what is said of the webhook here holds for both.
An alert that cannot be delivered is logged and never hides the failure itself. A task that fails
again and again for one reason is posted once: anew when the text differs, when the webhook did not take it, when the
task had not failed for an hour, or when what failed was well in between. An alert says since when each table is at
fault, which ones are well again, and what to do next. The first success behind a failure says all clear, in the same
three places. What is well again, or no table of the pipeline any more, and the webhook did not take goes with the next
alert, or all clear.

What is at fault is known by the checks of a pipeline, whichever DAG they are of: a repair's proof clears what it
proves (earlier.py, standing.py). Other tasks clear what their run was about (concerned.py), and an erasure that went
well says nothing of one that failed: it is all clear when the task of that very run has gone well.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from airflow.sdk import BaseNotifier
from airflow.sdk.configuration import conf

from contract.pipeline import Pipeline, PipelineFileError
from headrace import concerned, delivery, pipeline_files
from headrace.earlier import earlier
from headrace.next_step import next_step
from headrace.standing import LEFT, UNSEEN, at_fault, cleared, standing
from quality import folder


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
        alert |= _data_docs(pipeline, _result(context))
        seen = concerned.seen(context, _result(context))
        alert |= standing(alert, seen, at_fault(before.newest), before.untold())
        for table in alert["mended"]:
            self.log.info("ALL CLEAR %s", table)
        for table in alert["left"]:
            self.log.info("%s: %s", LEFT, table)
        keep(self.log, pipeline, {"pipeline": pipeline.name, **alert}, context, before.has(alert))


class AllClear(BaseNotifier):
    """`on_success_callback=AllClear(pipeline_file)`: says so once, where the task had failed before; of a run of some
    tables, of those alone."""

    def __init__(self, pipeline_file: str) -> None:
        super().__init__()
        self.pipeline_file = pipeline_file

    def notify(self, context: Any) -> None:
        task = _task(context)
        try:
            pipeline = pipeline_files.load(self.pipeline_file)
        except PipelineFileError:
            return  # told by whoever reads the file for its work
        before = earlier(pipeline, task)
        if before.newest is None:
            return
        if before.newest.get("clear"):
            tell_again(self.log, pipeline, before.newest, context)
            return
        since = at_fault(before.newest)
        seen = concerned.seen(context, concerned.report_of(context))
        if not (told := cleared(seen, since, before.untold())):
            self.log.info("%s: %s", UNSEEN, ", ".join(since))
            return
        self.log.info("ALL CLEAR %s %s: %s", task["dag"], task["task"], told["message"])
        keep(self.log, pipeline, {"pipeline": pipeline.name, "at": _now(), **task, **told}, context)


def tell_again(log: Any, pipeline: Pipeline, clear: dict[str, Any], context: Any) -> None:
    """An all clear that the webhook did not take; it is kept once more when the webhook has it."""
    told = {key: value for key, value in clear.items() if key != "posted"}
    if clear.get("posted") is False and delivery.took(log, pipeline, told, context):
        append(log, pipeline, {**told, "posted": True})


def keep(log: Any, pipeline: Pipeline, alert: dict[str, Any], context: Any, posted: bool = False) -> None:
    """Posts it, unless that was done, and writes it down. `posted` is None where there is no webhook."""
    alert["posted"] = posted or delivery.took(log, pipeline, alert, context)
    append(log, pipeline, alert)


def append(log: Any, pipeline: Pipeline, alert: dict[str, Any]) -> None:
    try:
        log.info("kept in %s", folder.append_alert(pipeline, alert))
    except OSError as error:
        log.error("the alert was not kept in %s: %s", folder.folder(pipeline), error)


def describe(context: Any) -> dict[str, Any]:
    """`at, dag, task, run, log, message, tables` of the failed task; `tables`: `db.table` -> difference."""
    error = context.get("exception")
    told = {"message": str(error) if error else "failed", "tables": concerned.faults(context)}
    return {"at": _now(), **_task(context), **told}


def _task(context: Any) -> dict[str, Any]:
    ti = context["ti"]
    return {"dag": ti.dag_id, "task": ti.task_id, "run": ti.run_id, "log": getattr(ti, "log_url", None)}


def _data_docs(pipeline: Pipeline, report: dict[str, Any]) -> dict[str, str]:
    """Where the pages of a check's expectations are, if it came to them, and could write them."""
    if not (told := report.get("expectations")) or not told.get("docs", True):
        return {}
    server = conf.get("api", "base_url", fallback="").rstrip("/")
    return {"data_docs": f"{server}/headrace/docs/{pipeline.name}/index.html"}


def _result(context: Any) -> dict[str, Any]:
    """The report of the job that failed, where there is one."""
    return getattr(context.get("exception"), "result", None) or {}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
