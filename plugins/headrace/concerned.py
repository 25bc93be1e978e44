"""Which tables a task was about that is no check, nor a compaction: by the conf of its run, and by the report of its
job; of a task behind `stage`, by that one's.

Out: what is at fault with each of them, and a report with a line a table, as standing.py reads that of a check.
"""

from __future__ import annotations

from typing import Any

from contract.pipeline_maintenance import STEPS
from headrace.run_conf import UnknownParameter
from headrace.standing import EVERY
from quality.report import differences

STAGE = "stage"
BEHIND = ("all_staged", "applied")  # whose run is about what `stage` was to have
ERASE = "erase"
MAINTAIN = "maintain"
SCOPED = (STAGE, *BEHIND, MAINTAIN, ERASE)
NOT_DONE = "not done, as the message says"


def faults(context: Any) -> dict[str, str]:
    """Of the task that failed: `db.table` -> what is wrong with it. Where none is known, of a run of all."""
    error = context.get("exception")
    report = getattr(error, "result", None) or {}
    if context["ti"].task_id not in SCOPED:
        return differences(report)
    if isinstance(error, UnknownParameter):  # a conf that nobody can read is about no table
        return {}
    told = report.get("lacking") or _left_out(report)
    return {**told} or dict.fromkeys(_named(context) or [EVERY], NOT_DONE)


def seen(context: Any, report: dict[str, Any]) -> dict[str, Any]:
    """What a task says of tables, by its job's report. A repair of all says nothing of tables without differences."""
    if context["ti"].task_id not in SCOPED:
        return report
    left_out = {**_left_out(report), **report.get("lacking", {})}
    unclear = [EVERY] if _some_steps(context) else []
    told = dict.fromkeys([*(report.get("tables") or ()), *left_out, *unclear])
    tables = {name: dict.fromkeys(("done", "clears"), not unclear and name not in left_out) for name in told}
    return {"named": _named(context) or (None if report.get("job") == "repair" else []), "tables": tables}


def report_of(context: Any) -> dict[str, Any]:
    """That of the job of a task that went well."""
    task = context["ti"].task_id
    told = context["ti"].xcom_pull(task_ids=STAGE if task in BEHIND else task)
    return told if isinstance(told, dict) else {}


def _left_out(report: dict[str, Any]) -> dict[str, str]:
    return {**(report.get("passed_by") or {}), **(report.get("failed") or {})}


def _some_steps(context: Any) -> bool:
    """Of a maintenance, which says nothing of what the other steps failed in."""
    conf = getattr(context.get("dag_run"), "conf", None) or {}
    return context["ti"].task_id == MAINTAIN and not {*STEPS} <= {*(conf.get("steps") or STEPS)}


def _named(context: Any) -> list[str]:
    """The tables that a person chose for the run."""
    conf = getattr(context.get("dag_run"), "conf", None) or {}
    listed = [*(conf.get("tables") or ()), conf.get("table") or ""]
    return list(dict.fromkeys(name.strip() for name in listed if name.strip()))
