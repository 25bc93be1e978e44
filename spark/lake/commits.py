"""What the commits of a lake's table say of themselves: who made each, what it did, and which partitions it added to.

Read from the files of the table's log (Delta's protocol, "Commit Provenance Information"), since to ask Delta costs a
query, and it fails at a commit that says nothing of itself, which the protocol allows. What is said in another form
than Delta's counts as not said.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple

from spark.lake.lake import Lake, commit_file
from spark.session import OURS

FEW = 200  # commits, which are opened by their numbers; of more the log is listed first


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


def commits(lake: Lake, path: str, behind: int, to: int | None = None) -> Sequence[Commit]:
    """Those of the table at the path behind a version, the oldest first, and up to another; without those that the log
    has no more."""
    last = lake.version(path) if to is None else to
    if last is None:
        return []
    versions: Sequence[int] = range(behind + 1, last + 1)
    if len(versions) > FEW:
        versions = [version for version in lake.commits(path) if behind < version <= last]
    files = ((version, lake.lines(commit_file(path, version))) for version in versions)
    return [_commit(version, lines) for version, lines in files if lines is not None]


def partitions(lake: Lake, path: str, version: int) -> set[tuple[tuple[str, str | None], ...]]:
    """To which the commit added files: the names and values of each."""
    lines = lake.lines(commit_file(path, version)) or []
    added = (json.loads(line)["add"] for line in lines if line.startswith('{"add"'))
    return {tuple(sorted(one["partitionValues"].items())) for one in added}


def added(lake: Lake, path: str, version: int) -> set[str]:
    """The names of the files that the commit added, without their folders."""
    lines = lake.lines(commit_file(path, version)) or []
    return {json.loads(line)["add"]["path"].rpartition("/")[2] for line in lines if line.startswith('{"add"')}


def removed(lake: Lake, path: str, version: int, column: str) -> set[str | None]:
    """The values of a partition's column of the files that the commit took away; None of one that does not say."""
    lines = lake.lines(commit_file(path, version)) or []
    gone = (json.loads(line)["remove"] for line in lines if line.startswith('{"remove"'))
    return {(one.get("partitionValues") or {}).get(column) for one in gone}


def _commit(version: int, lines: Sequence[str]) -> Commit:
    told = next(_told(lines), {})
    operation, given = str(told.get("operation") or ""), told.get("operationParameters")
    to = given.get("version") if operation == "RESTORE" and isinstance(given, Mapping) else None
    return Commit(
        version=version,
        operation=operation,
        ours=told.get("userMetadata") == OURS,
        at=_time(told.get("timestamp")),
        restored=int(number) if (number := str(to).strip('"')).isdecimal() else None,
    )


def _time(ms: object) -> datetime | None:
    with suppress(TypeError, ValueError, OverflowError, OSError):
        return datetime.fromtimestamp(ms / 1000, UTC)  # type: ignore[operator]
    return None


def _told(lines: Sequence[str]) -> Iterator[Mapping[str, Any]]:
    # The lines of the files that a commit adds, which may be thousands, are not parsed.
    found = (json.loads(line)["commitInfo"] for line in lines if '"commitInfo"' in line[:20])
    return (one for one in found if isinstance(one, Mapping))
