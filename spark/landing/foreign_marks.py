"""The marks of tables that somebody else wrote (foreign.py), from run to run until each is settled: by a snapshot, by a
part that is the whole table, or by a check of all rows that finds them equal.

Nothing here goes by a clock: snapshots have their ids, checks their numbers, and each says which run's lake it saw.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Set
from contextlib import suppress
from typing import Any

from contract import names
from contract.status import Foreign, LakeStatus
from spark.errors import LakeError
from spark.lake.applied import AppliedSnapshots
from spark.lake.lake import Lake
from spark.lake.stopped import Name
from spark.proof.reports import numbers

UNKNOWN = -1  # the run, of a report of a version that did not say it


def marked(
    now: LakeStatus, lake: Lake, last: LakeStatus | None, found: Mapping[Name, str], mended: Set[Name]
) -> LakeStatus:
    """The status with what this run found, and what the `last` one tells and nothing has settled since. `mended`: the
    tables all of whose rows this run has set right."""
    snapshots, at = AppliedSnapshots(lake).tables, int(time.time() * 1000)
    marks = {name: mark for name, mark in _open(lake, last).items() if name not in mended}
    check = max(numbers(lake), default=0) if found else 0
    for name, reason in found.items():
        snapshot = snapshots[name].id if name in snapshots else None
        marks[name] = Foreign(reason=reason, at=at, run=now.run, check=check, snapshot=snapshot)
    tables = {
        name: table if table.changes_only else table.model_copy(update={"foreign": marks.get((table.db, table.table))})
        for name, table in now.tables.items()
    }
    return now.model_copy(update={"tables": tables})


def _open(lake: Lake, last: LakeStatus | None) -> dict[Name, Foreign]:
    marks = {(t.db, t.table): t.foreign for t in last.tables.values() if t.foreign} if last else {}
    if not marks:
        return {}
    snapshots = {name: one.id for name, one in AppliedSnapshots(lake).tables.items()}
    open = {name: mark for name, mark in marks.items() if not mark.run or snapshots.get(name) == mark.snapshot}
    for number in numbers(lake) if open else ():
        if any(mark.check < number for mark in open.values()):
            run, equal = _check(lake, number)
            seen = {name for name, mark in open.items() if mark.check < number and mark.run <= run}
            open = {name: mark for name, mark in open.items() if name not in seen or ".".join(name) not in equal}
    return open


def _check(lake: Lake, number: int) -> tuple[int, set[str]]:
    """The run whose lake the check compared, and the tables that it found to be equal, all of their rows."""
    with suppress(LakeError):  # a report that is broken proves nothing
        report = lake.read(lake.at(names.QUALITY, f"{number}.json")) or {}
        return report.get("lake_run", UNKNOWN), _equal(report)
    return UNKNOWN, set()


def _equal(report: Mapping[str, Any]) -> set[str]:
    tables = report.get("tables", {}).items()
    whole = {name: one for name, one in tables if one.get("chunks") == one.get("chunks_compared")}
    return {name for name, one in whole.items() if one.get("equal") and not one.get("unplaced")}
