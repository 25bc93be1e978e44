"""What the commits of a lake's table say of themselves: who made each, and what it did.

Read from the files of the table's log (Delta's protocol, "Commit Provenance Information"), since to ask Delta costs a
query, and it fails at a commit that says nothing of itself, which the protocol allows.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple

from spark.lake import Lake
from spark.session import OURS


class Commit(NamedTuple):
    """`operation`: in Delta's words; empty where it does not say. `ours`: whether a job of Headrace made it. `at`: by
    the clock of whoever wrote it. `restored`: the version that a RESTORE went back to."""

    version: int
    operation: str
    ours: bool
    at: datetime | None
    restored: int | None

    def __str__(self) -> str:
        when = f", at {self.at:%Y-%m-%d %H:%M:%S} UTC" if self.at else ""
        return f"{self.operation or 'a commit that does not say what it did'} as version {self.version}{when}"


def commits(lake: Lake, path: str, behind: int) -> Sequence[Commit]:
    """Those of the table at the path behind a version, the oldest first; without those that the log has no more."""
    log = f"{path}/_delta_log"
    names = [name for name in lake.list(log) if name.endswith(".json") and name[:-5].isdigit()]
    return [_commit(lake, f"{log}/{name}", int(name[:-5])) for name in names if int(name[:-5]) > behind]


def _commit(lake: Lake, file: str, version: int) -> Commit:
    told = next(_told(lake.lines(file)), {})
    operation, at = str(told.get("operation") or ""), told.get("timestamp")
    to = (told.get("operationParameters") or {}).get("version") if operation == "RESTORE" else None
    return Commit(
        version=version,
        operation=operation,
        ours=told.get("userMetadata") == OURS,
        at=datetime.fromtimestamp(at / 1000, UTC) if at else None,
        restored=int(number) if (number := str(to).strip('"')).isdecimal() else None,
    )


def _told(lines: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    # The lines of the files that a commit adds, which may be thousands, are not parsed.
    return (json.loads(line)["commitInfo"] for line in lines if '"commitInfo"' in line[:20])
