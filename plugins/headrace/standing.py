"""Which tables are at fault, and since when: by what was kept last, and by the report of the job that ended now.

A check of a sample clears what it looked at, and one that could not judge a table's expectations clears none that the
table did not meet (its report says so: `clears`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from quality.report import SUITES

EVERY = "all tables"  # stands where a table's name does, for a run of all that told of none
ENDS = ("mended", "left")  # of a fault: the table is well again, or no more one of the pipeline's
LEFT = "dropped, renamed, excluded, no more compared or not shown to the check's user since"
UNSEEN = "not looked at, and at fault since it was"


def at_fault(last: dict[str, Any] | None) -> dict[str, str]:
    """Each table at fault behind what was kept last, and since when, ISO 8601."""
    return {} if last is None or last.get("clear") else dict(last.get("since") or {})


def standing(
    alert: dict[str, Any], report: dict[str, Any], before: dict[str, str], untold: Mapping[str, list[str]]
) -> dict[str, Any]:
    """`since`: when each table's fault began, also of those that this failure says nothing of. `mended`: those that
    were at fault and were found equal; `left`: those that a check of all has no more; both with what of before is
    `untold`."""
    facts = _facts(report)
    well, gone = [table for table in before if _well(facts.get(table, {}))], _gone(report, before)
    since = {table: at for table, at in before.items() if table not in (*well, *gone)}
    for table in alert["tables"]:
        since[table] = facts.get(table, {}).get("since") or before.get(table) or alert["at"]
    ended = {"mended": [*untold["mended"], *well], "left": [*untold["left"], *gone]}
    return {"since": since, **{word: [one for one in found if one not in since] for word, found in ended.items()}}


def cleared(report: dict[str, Any], before: dict[str, str], untold: Mapping[str, list[str]]) -> dict[str, Any]:
    """What is all clear behind a task that went well: `clear` (whether all is), `message`, `tables`, `since`, `mended`
    and `left`. Empty where nothing is. `before`, `untold`: as above."""
    gone = _gone(report, before)
    waiting = {table: at for table, at in before.items() if table not in gone and not _looked_at(report, table)}
    mended = [*untold["mended"], *(table for table in before if table not in (*waiting, *gone))]
    left = [*untold["left"], *gone]
    if waiting and not (mended or left):
        return {}
    since = {table: f", at fault since {before[table]}" if table in before else "" for table in mended}
    return {
        "clear": not waiting,
        "message": _message(mended, left, waiting),
        "tables": {table: f"all clear{told}" for table, told in since.items()} | dict.fromkeys(left, LEFT),
        "since": waiting or before,
        "mended": mended,
        "left": left,
    }


def _message(mended: Iterable[str], left: Iterable[str], waiting: Iterable[str]) -> str:
    parts = (("all clear", mended), (LEFT, left), (UNSEEN, waiting))
    told = [f"{words}: {', '.join(tables)}" for words, tables in parts if tables]
    return "; ".join(told if mended or waiting else ["all clear", *told])


def _gone(report: dict[str, Any], before: Iterable[str]) -> list[str]:
    """The tables that a check of all does not have: its report alone tells that it is one, by an empty `named`. And
    those that no check compares any more, by the pipeline file."""
    facts = _facts(report)
    of_all = facts and report.get("named") == []
    there = {one for one in (*facts, SUITES, EVERY) if not _incomparable(facts.get(one, {}))}
    return [one for one in before if one not in there and (of_all or one in facts)]


def _incomparable(told: dict[str, Any]) -> bool:
    """Not so one that was dropped while the check ran: its line says that it clears nothing."""
    return told.get("equal", True) is None and "clears" not in told


def _looked_at(report: dict[str, Any], table: str) -> bool:
    """Whether the task that went well was about the table: about all, where its report does not name some; and about
    what was at fault in it."""
    if table == SUITES:
        return not (report.get("expectations") or {}).get("unread")
    named = report.get("named")
    return (not named or table in named) and _clears(_facts(report).get(table, {}))


def _well(told: dict[str, Any]) -> bool:
    """Of a check's line, of a compaction's, or of another task's (concerned.py)."""
    return bool(told.get("done") or (told.get("equal") and _clears(told))) or told.get("stopped", told) is None


def _clears(facts: dict[str, Any]) -> bool:
    """Whether a table's line of a check speaks for what was at fault in it: not that of a sample of other chunks, nor
    where it was not compared, or the expectations that it did not meet were not judged."""
    compared = facts.get("equal", True) is not None and facts.get("chunks_compared") == facts.get("chunks")
    return bool(facts.get("clears", compared))


def _facts(report: dict[str, Any]) -> dict[str, dict[str, Any]]:
    found = report.get("tables") or {}
    return {name: facts for name, facts in found.items() if isinstance(facts, dict)}
