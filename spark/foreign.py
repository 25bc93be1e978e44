"""What somebody else did to the lake's tables since the last run: every commit of Headrace's jobs says that it is one.

Of a current table that is told, with the way to make it whole; the run goes on, and a check shows what it did. The
table is marked until that is settled. A change in `_changes` would become a change of the tables, so there the run
stops before anything is merged.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Set
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from delta.tables import DeltaTable
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as fn

from contract import status, steps
from contract.status import LakeStatus, TableStatus
from spark.applied import Applied, AppliedSnapshots
from spark.errors import LakeError
from spark.lake import Lake
from spark.schema import at
from spark.session import OURS
from spark.stopped import Name

# They change no row, or take out of the log what is not there any more.
HARMLESS = re.compile(r"OPTIMIZE|REORG|VACUUM|TBLPROPERTIES|FSCK|COMPUTE STATS|MANIFEST", re.IGNORECASE)
# Unix ms between the run that marks a table and the first check that is sure to have compared the version it saw.
SEEN_MS = 10_000
LONGEST_MS = 86_400_000  # that a check takes; the marks of a longer one wait for the next


@dataclass(frozen=True)
class Foreign:
    """`did`: what somebody else did, in words; `before`: the version to go back to, None where there is none."""

    did: str
    before: int | None = None


def refuse_foreign_changes(spark: SparkSession, lake: Lake, last: LakeStatus) -> None:
    """Raises LakeError where somebody else wrote into `_changes`, or took it away."""
    if last.changes_version is None or (found := _done(spark, lake, lake.changes, last.changes_version)) is None:
        return
    raise LakeError(
        f"somebody else than Headrace's jobs changed {lake.changes}: {found.did}. Nothing was landed or merged. "
        f"{_back(lake, found)}"
    )


def _back(lake: Lake, found: Foreign) -> str:
    if not lake.is_table(lake.changes):
        return "Put it back from a copy; then run this again"
    if found.before is not None:
        return f"Take that back: RESTORE TABLE {at(lake.changes)} TO VERSION AS OF {found.before}; then run this again"
    return (
        "Changes that a run landed would go with it, so it cannot be taken back: move the folder "
        f"{lake.root} away and {steps.snapshot(lake.pipeline)}, which makes the lake anew"
    )


def foreign_writes(spark: SparkSession, lake: Lake, last: LakeStatus) -> dict[Name, str]:
    """The current tables that somebody else changed or took away, and what to do about each."""
    found, snapshots = {}, AppliedSnapshots(lake)
    for name, table in last.tables.items():
        path = lake.table(table.db, table.table)
        name_of = table.db, table.table
        since = _since(table, None if snapshots.gap(name_of) else snapshots.tables.get(name_of))
        if since is not None and (done := _done(spark, lake, path, since)) is not None:
            found[table.db, table.table] = (
                f"somebody else than Headrace's jobs changed the lake's table {name}: {done.did}. A check shows what "
                f"differs now; to make the table anew, {steps.SNAPSHOT_TABLE}"
            )
    return found


def marked(
    now: LakeStatus, lake: Lake, last: LakeStatus | None, found: Mapping[Name, str], mended: Set[Name]
) -> LakeStatus:
    """The status with what this run found, and what the `last` one tells and nothing has settled since. `mended`: the
    tables all of whose rows this run has set right."""
    at = int(time.time() * 1000)
    marks = _open(lake, last) | {name: status.Foreign(reason=reason, at=at) for name, reason in found.items()}
    marks = {name: mark for name, mark in marks.items() if name not in mended}
    tables = {
        name: table.model_copy(update={"foreign": marks.get((table.db, table.table))})
        for name, table in now.tables.items()
    }
    return now.model_copy(update={"tables": tables})


def _open(lake: Lake, last: LakeStatus | None) -> dict[Name, status.Foreign]:
    before = {(t.db, t.table): t.foreign for t in last.tables.values() if t.foreign} if last else {}
    applied = {name: one.applied_at for name, one in AppliedSnapshots(lake).tables.items()} if before else {}
    open = {name: mark for name, mark in before.items() if applied.get(name, 0) <= mark.at}
    if open:
        assert last is not None
        # The runs before this one have judged what had ended by then.
        since = max(min(mark.at for mark in open.values()) + SEEN_MS, last.written_at - LONGEST_MS)
        for began, equal in _checks(lake, since):
            open = {
                name: mark for name, mark in open.items() if ".".join(name) not in equal or began <= mark.at + SEEN_MS
            }
    return open


def _checks(lake: Lake, since: int) -> Iterator[tuple[int, set[str]]]:
    """When each check behind that time began, and the tables that it found to be equal, all of their rows."""
    folder = lake.at("_quality")
    for name in lake.list(folder):
        began = name.removesuffix(".json")
        if began.isdecimal() and int(began) > since:
            with suppress(LakeError):  # a report that is broken proves nothing
                yield int(began), _equal(lake.read(f"{folder}/{name}") or {})


def _equal(report: Mapping[str, Any]) -> set[str]:
    tables = report.get("tables", {}).items()
    return {name for name, one in tables if one.get("equal") and one.get("chunks") == one.get("chunks_compared")}


def forget_lost(lake: Lake, snapshots: AppliedSnapshots, found: dict[Name, str]) -> None:
    """Tables that are gone lack what their snapshot had: they count as not snapshotted."""
    for name in found:
        if not lake.is_table(lake.table(*name)) and name in snapshots.tables:
            snapshots.note(name, snapshots.tables[name].model_copy(update={"gap": True}))


def _since(table: TableStatus, applied: Applied | None) -> int | None:
    """The version behind which nobody looked yet: that of a snapshot, where a run died behind it."""
    if applied is None or (table.snapshot and table.snapshot.id == applied.id):
        return table.version
    return applied.version


def _done(spark: SparkSession, lake: Lake, path: str, since: int) -> Foreign | None:
    """What was done behind the version; None where nothing was that changes a row, or that was taken back."""
    now = lake.version(path)
    if now == since:
        return None
    if now is None:
        return Foreign("it is gone")
    if now < since:
        return Foreign(f"it ends at version {now} and had version {since}")
    history = DeltaTable.forPath(spark, path).history().where(fn.col("version") > since)
    commits = history.select("version", "operation", "operationParameters", "userMetadata", "timestamp").collect()
    strange, ours = _left([one for one in reversed(commits) if not HARMLESS.search(one["operation"])], since)
    if not strange:
        return None
    first = strange[0]
    when = f"{first['timestamp'].astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    before = None if any(one > first["version"] for one in ours) else first["version"] - 1
    return Foreign(f"{first['operation']} as version {first['version']}, at {when}", before)


def _left(commits: list[Row], since: int) -> tuple[list[Row], list[int]]:
    """Of the commits behind `since`, the oldest first: those of others that nobody took back, and our versions. A
    RESTORE takes back what is behind its version, and is itself a loss where we wrote something there."""
    strange: list[Row] = []
    ours: list[int] = []
    for one in commits:
        to = _restored(one)
        if to is not None and to >= since and not any(version > to for version in ours):
            strange = [other for other in strange if other["version"] <= to]
        elif one["userMetadata"] == OURS and one["operation"] != "RESTORE":
            ours.append(one["version"])
        else:
            strange.append(one)
    return strange, ours


def _restored(commit: Row) -> int | None:
    to = (commit["operationParameters"] or {}).get("version") if commit["operation"] == "RESTORE" else None
    return int(to) if to is not None and to.isdecimal() else None
