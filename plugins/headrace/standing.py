"""Which tables are at fault, and since when: by what was kept last, and by the report of the job that ended now.

A check of a sample clears what it looked at, and one that could not judge a table's expectations clears none that the
table did not meet (its report says so: `clears`).
"""

from __future__ import annotations

from typing import Any

from quality.report import SUITES


def at_fault(last: dict[str, Any] | None) -> dict[str, str]:
    """Each table at fault behind what was kept last, and since when, ISO 8601."""
    return {} if last is None or last.get("clear") else dict(last.get("since") or {})


def standing(alert: dict[str, Any], report: dict[str, Any], before: dict[str, str]) -> dict[str, Any]:
    """`since`: when each table's fault began, also of those that this failure says nothing of. `mended`: those that
    were at fault and were found equal."""
    facts = _facts(report)
    well = {table for table, told in facts.items() if _well(told)} - {*alert["tables"]}
    mended = [table for table in before if table in well]
    since = {table: at for table, at in before.items() if table not in mended}
    for table in alert["tables"]:
        since[table] = facts.get(table, {}).get("since") or before.get(table) or alert["at"]
    return {"since": since, "mended": mended}


def looked_at(report: dict[str, Any], table: str) -> bool:
    """Whether the task that went well was about the table: about all, where its report does not name some; and about
    what was at fault in it."""
    if table == SUITES:
        return not (report.get("expectations") or {}).get("unread")
    named = report.get("named")
    return (not named or table in named) and _clears(_facts(report).get(table, {}))


def _well(told: dict[str, Any]) -> bool:
    """Of a check's line, or of a compaction's."""
    return bool(told.get("equal") and _clears(told)) or told.get("stopped", told) is None


def _clears(facts: dict[str, Any]) -> bool:
    """Whether a table's line of a check speaks for what was at fault in it: not that of a sample of other chunks, nor
    where the expectations that it did not meet were not judged."""
    return bool(facts.get("clears", facts.get("chunks_compared") == facts.get("chunks")))


def _facts(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found = report.get("tables") or {}
    return {name: facts for name, facts in found.items() if isinstance(facts, dict)}
