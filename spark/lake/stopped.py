"""The tables that wait, in a file of the lake, so that no change of theirs is passed by for good."""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace
from typing import Any

from spark.failpoints import reached
from spark.lake.lake import Lake

Name = tuple[str, str]  # db, table
WAIT = "its changes wait in _changes meanwhile, and later runs try again"


@dataclass
class Stopped:
    """`since`: the least `_seq` of the table's changes that are not merged. `kept`: the lake was, or is, to have no
    more than its changes, so those that wait are counted as what the lake has. `tried`: when a slow try of all that
    waits ended in vain, Unix s; `took`: its seconds, 0 where the last one was none; `by`: what it went by
    (spark/merging/tries.py)."""

    since: list[int]
    reason: str
    kept: bool = False
    tried: float = 0.0
    took: float = 0.0
    by: str = ""


class StoppedTables:
    """May be used by several threads."""

    def __init__(self, lake: Lake) -> None:
        self.lake, self.path, self.lock = lake, lake.at("_stopped.json"), threading.Lock()
        known: Any = lake.read(self.path) or []
        self.tables: dict[Name, Stopped] = {
            (t["db"], t["table"]): Stopped(t["since"], t["reason"], t.get("kept", False), *_try(t)) for t in known
        }

    def stop(self, name: Name, since: list[int], reason: str, kept: bool = False) -> None:
        with self.lock:
            before = self.tables.get(name)
            stop = Stopped(since, reason, kept)
            if before:
                stop = replace(before, since=min(before.since, since), reason=reason, kept=kept or before.kept)
            if stop == before:
                return
            self.tables[name] = stop
            self._write()
            reached("table stopped")

    def note_try(self, name: Name, tried: float = 0.0, took: float = 0.0, by: str = "") -> None:
        """Of a table that stays stopped. Nothing is noted of a try that each run can make, since it costs a write."""
        with self.lock:
            before = self.tables[name]
            self.tables[name] = replace(before, tried=tried, took=took, by=by)
            if self.tables[name] != before:
                self._write()
                reached("try noted")

    def release(self, name: Name) -> None:
        with self.lock:
            del self.tables[name]
            self._write()
            reached("table released")

    def _write(self) -> None:
        tables = [{"db": db, "table": table, **vars(stop)} for (db, table), stop in sorted(self.tables.items())]
        self.lake.write(self.path, tables)


def _try(known: dict[str, Any]) -> tuple[float, float, str]:
    """Earlier versions of Headrace noted none."""
    return known.get("tried", 0.0), known.get("took", 0.0), known.get("by", "")
