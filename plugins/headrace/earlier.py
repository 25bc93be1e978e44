"""What was kept of a task before, and whether a failure is news behind it. What a check tells holds for those of the
pipeline's other DAGs, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from contract.pipeline import Pipeline
from headrace.concerned import ERASE
from headrace.next_step import PROOF
from headrace.standing import ENDS
from quality import folder

PAUSE = timedelta(hours=1)  # after so long without one, a failure is news even with the same text


@dataclass(frozen=True)
class Earlier:
    """`own`: the newest of the very task. `others`: of checks of other DAGs, those since then, the newest first."""

    own: dict[str, Any] | None
    others: tuple[dict[str, Any], ...] = ()

    @property
    def newest(self) -> dict[str, Any] | None:
        return self.others[0] if self.others else self.own

    def untold(self) -> dict[str, list[str]]:
        """The tables that are well again (`mended`), or are no more (`left`), which the webhook did not take; where
        there was none, nothing waits."""
        last = self.newest or {}
        waits = last.get("posted") is False
        return {word: [*last.get(word, ())] if waits else [] for word in ENDS}

    def has(self, alert: dict[str, Any]) -> bool:
        """Whether the webhook has taken the same from the task's last failure, a short while ago, no all clear of it
        since, and no other fault has ended."""
        last = self.own
        if last is None or not last.get("posted") or any(last.get(key) != alert[key] for key in ("message", "tables")):
            return False
        if any(alert[word] for word in ENDS) or any(_clears(other, alert) for other in self.others):
            return False
        return datetime.fromisoformat(alert["at"]) - datetime.fromisoformat(last["at"]) < PAUSE


def _clears(other: dict[str, Any], alert: dict[str, Any]) -> bool:
    """All, or a table of the alert."""
    return bool(other.get("clear")) or any(table in alert["tables"] for word in ENDS for table in other.get(word, ()))


def earlier(pipeline: Pipeline, task: dict[str, Any]) -> Earlier:
    """Of what cannot be read nothing is known."""
    others: list[dict[str, Any]] = []
    try:
        for one in folder.alerts_of(pipeline, task["task"], None if task["task"] == PROOF else task["dag"]):
            if task["task"] == ERASE and one.get("run") != task["run"]:  # of other keys, which no alert has
                continue
            if one.get("dag") == task["dag"]:
                return Earlier(one, (*others,))
            others.append(one)
    except (OSError, ValueError):
        pass
    return Earlier(None, (*others,))
