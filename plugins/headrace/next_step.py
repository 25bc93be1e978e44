"""What to do next behind a failed task, by what its report found."""

from __future__ import annotations

from typing import Any

from quality.report import differences

PROOF = "verify"  # the task of every DAG that checks
MENDS = (
    "Start the DAG {pipeline}.repair: it mends what this check found and proves it (a table that is stale, stopped "
    "or not snapshotted: {pipeline}.snapshot for it, then {pipeline}.quality)"
)
AGAIN = "Start the DAG {pipeline}.quality: another check may tell what this one could not"
UNMET = "Mend the rows in the source, or the suite file; then start the DAG {pipeline}.quality"
OTHERWISE = (
    "Do as the message says; then clear the task, wait for the next run, or, of a wrong conf, start the DAG again"
)


def next_step(error: Any, task: str, pipeline: str) -> str:
    """`error`: that of the failed task, which may know it; `result` of it is the report of its job."""
    if known := getattr(error, "next_step", None):
        return str(known)
    report = getattr(error, "result", None) or {}
    return (_of_check(report) if task == PROOF else OTHERWISE).format(pipeline=pipeline)


def _of_check(report: dict[str, Any]) -> str:
    """A repair mends rows that differ, and nothing else that a check may find. A check that found nothing, as one that
    a server or the lake kept waiting, says itself what is wrong, and the task is cleared behind that."""
    tables = (report.get("tables") or {}).values()
    if report.get("again"):
        return AGAIN if tables else OTHERWISE
    unequal = [facts for facts in tables if isinstance(facts, dict) and facts.get("equal") is False]
    if any(_compared(facts) for facts in unequal):
        return MENDS
    return UNMET if differences(report) and not unequal else OTHERWISE


def _compared(facts: dict[str, Any]) -> bool:
    """Of others the source gave no rows, and the message says why."""
    return facts.get("source_count", 0) is not None
