"""Which tables are at fault, and since when: by what was kept last, and by the report of the job that ended now.

A check of a sample clears what it looked at, and one that could not judge a table's expectations clears none that the
table did not meet (its report says so: `clears`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from quality.report import SUITES

UNSEEN = "not looked at, and at fault since it was"


def at_fault(last: dict[str, Any] | None) -> dict[str, str]:
    """Each table at fault behind what was kept last, and since when, ISO 8601."""
    return {} if last is None or last.get("clear") else dict(last.get("since") or {})


def standing(
    alert: dict[str, Any], report: dict[str, Any], before: dict[str, str], untold: Iterable[str] = ()
) -> dict[str, Any]:
    """`since`: when each table's fault began, also of those that this failure says nothing of. `mended`: those that
    were at fault and were found equal, and those of before that are `untold`."""
    facts = _facts(report)
    well = {table for table, told in facts.items() if _well(told)}
    found = [table for table in before if table in well]
    since = {table: at for table, at in before.items() if table not in found}
    for table in alert["tables"]:
        since[table] = facts.get(table, {}).get("since") or before.get(table) or alert["at"]
    return {"since": since, "mended": [table for table in (*untold, *found) if table not in alert["tables"]]}


def cleared(report: dict[str, Any], before: dict[str, str], untold: Iterable[str] = ()) -> dict[str, Any]:
    """What is all clear behind a task that went well: `clear` (whether all is), `message`, `tables`, `since` and
    `mended`. Empty where nothing is; `untold`: as above."""
    waiting = {table: at for table, at in before.items() if not _looked_at(report, table)}
    mended = [*untold, *(table for table in before if table not in waiting)]
    if waiting and not mended:
        return {}
    told = {table: f", at fault since {before[table]}" if table in before else "" for table in mended}
    named = f": {', '.join(mended)}" if mended else ""
    return {
        "clear": not waiting,
        "message": f"all clear{named}{f'; {UNSEEN}: ' if waiting else ''}{', '.join(waiting)}",
        "tables": {table: f"all clear{since}" for table, since in told.items()},
        "since": waiting or before,
        "mended": mended,
    }


def _looked_at(report: dict[str, Any], table: str) -> bool:
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
