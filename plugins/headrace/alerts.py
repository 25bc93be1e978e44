"""What happens when a task fails, and when it goes well again: the notifiers of every task of a pipeline's DAGs.

It logs, keeps one JSON line (quality/folder.py), and POSTs the same JSON to the pipeline's `quality.webhook`
where there is one. An alert that cannot be delivered is logged and never hides the failure itself. A task that fails
again and again for one reason is posted once: anew when the text differs, when the webhook did not take it, or when the
task had not failed for an hour. An alert says since when each table is at fault, which ones are well again, and what to
do next. The first success behind a failure says all clear, in the same three places.

What is at fault is known by the checks of a pipeline, whichever DAG they are of: a repair's proof clears what it
proves. A check of a sample clears what it looked at, and one that could not judge a table's expectations clears none
that the table did not meet (its report says so: `clears`).
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from airflow.sdk import BaseNotifier

from contract.pipeline import Pipeline, PipelineFileError
from headrace import pipeline_files, webhook
from headrace.next_step import PROOF, next_step
from quality import folder
from quality.report import SUITES, differences

PAUSE = timedelta(hours=1)  # after so long without one, a failure is news even with the same text


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
        last, standing_since = last_of(pipeline, alert), at_fault(last_of(pipeline, alert, any_dag=True))
        alert["next_step"] = next_step(context.get("exception"), alert["task"], pipeline.name)
        self.log.error("next step: %s", alert["next_step"])
        alert |= standing(alert, context, standing_since)
        for table in alert["mended"]:
            self.log.info("ALL CLEAR %s", table)
        keep(self.log, pipeline, {"pipeline": pipeline.name, **alert}, repeated(last, alert))


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
        last = last_of(pipeline, clear, any_dag=True)
        if last is None or last.get("clear"):
            return
        since = at_fault(last)
        left = {table: at for table, at in since.items() if not _looked_at(context, table)}
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


def _looked_at(context: Any, table: str) -> bool:
    """Whether the task that went well was about the table: about all, where its report does not name some; and about
    what was at fault in it."""
    told = context["ti"].xcom_pull(task_ids=context["ti"].task_id)
    report = told if isinstance(told, dict) else {}
    if table == SUITES:
        return not (report.get("expectations") or {}).get("unread")
    named = report.get("named")
    return (not named or table in named) and clears((report.get("tables") or {}).get(table) or {})


def clears(facts: dict[str, Any]) -> bool:
    """Whether a table's line of a check speaks for what was at fault in it: not that of a sample of other chunks, nor
    where the expectations that it did not meet were not judged."""
    return bool(facts.get("clears", facts.get("chunks_compared") == facts.get("chunks")))


def last_of(pipeline: Pipeline, alert: dict[str, Any], any_dag: bool = False) -> dict[str, Any] | None:
    """What was kept last of the same task; `any_dag`: of a check also of another DAG's."""
    dag = None if any_dag and alert["task"] == PROOF else alert["dag"]
    try:
        return folder.last_alert(pipeline, dag, alert["task"])
    except (OSError, ValueError):
        return None


def at_fault(last: dict[str, Any] | None) -> dict[str, str]:
    """Each table at fault behind a task's last alert, and since when, ISO 8601."""
    return {} if last is None or last.get("clear") else dict(last.get("since") or {})


def standing(alert: dict[str, Any], context: Any, before: dict[str, str]) -> dict[str, Any]:
    """`since`: when each table's fault began, also of those that this failure says nothing of. `mended`: those that
    were at fault and were found equal."""
    facts = _facts(context)
    well = {table for table, told in facts.items() if _well(told)} - {*alert["tables"]}
    mended = [table for table in before if table in well]
    since = {table: at for table, at in before.items() if table not in mended}
    for table in alert["tables"]:
        since[table] = facts.get(table, {}).get("since") or before.get(table) or alert["at"]
    return {"since": since, "mended": mended}


def _well(told: dict[str, Any]) -> bool:
    """Of a check's line, or of a compaction's."""
    return bool(told.get("equal") and clears(told)) or told.get("stopped", told) is None


def repeated(last: dict[str, Any] | None, alert: dict[str, Any]) -> bool:
    """Whether the webhook has taken the same from this task's last failure, a short while ago."""
    if last is None or not last.get("posted") or any(last.get(key) != alert[key] for key in ("message", "tables")):
        return False
    return datetime.fromisoformat(alert["at"]) - datetime.fromisoformat(last["at"]) < PAUSE


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


def _facts(context: Any) -> dict[str, dict[str, Any]]:
    found = _result(context).get("tables") or {}
    return {name: facts for name, facts in found.items() if isinstance(facts, dict)}


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
