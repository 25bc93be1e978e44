"""What somebody else did to a table of the lake behind some version: every commit of our jobs says that it is ours."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from spark.lake.commits import Commit, commits
from spark.lake.lake import Lake
from spark.lake.stopped import Name

# They change no row.
HARMLESS = re.compile(r"OPTIMIZE|REORG|VACUUM|TBLPROPERTIES|COMPUTE STATS|MANIFEST", re.IGNORECASE)
# Takes files that are lost out of the log, and so their rows out of a table for good. In `_changes` it is a step of the
# way back (docs/operations.md), behind a snapshot that has what they said.
UNLISTED = re.compile(r"FSCK", re.IGNORECASE)
BEGINNING = -1  # what is before the first version of a table


@dataclass(frozen=True)
class Foreign:
    """`did`: what somebody else did, in words; `before`: the version to go back to, None where there is none. `lost`:
    whether rows that were there are not any more, and no commit has them."""

    did: str
    before: int | None = None
    lost: bool = False


def did_behind(lake: Lake, name: Name, version: int) -> str | None:
    """Of a current table, in words."""
    if lake.pipeline.changes_only(*name):  # there are no rows to be changed
        return None
    path = lake.table(*name)
    now = lake.version(path, version)
    found = None if now == version else done(lake, path, version, now, rows_of(lake, path, version, now))
    return found.did if found else None


def rows_of(lake: Lake, path: str, behind: int | None, to: int | None) -> list[Commit]:
    """The commits behind the version that change rows, the oldest first."""
    found = commits(lake, path, BEGINNING if behind is None else behind, to) if to is not None else []
    return [one for one in found if not HARMLESS.search(one.operation)]


def same_rows(lake: Lake, path: str, version: int) -> int:
    """The newest version of the table at the path that has the rows of this one. Where nothing but a maintenance wrote
    since, the files of this one may be gone (`maintenance.vacuum_hours`)."""
    while lake.goes_on(path, version):
        made = commits(lake, path, version, version + 1)
        if not made or not HARMLESS.search(made[0].operation):
            break
        version += 1
    return version


def done(lake: Lake, path: str, since: int | None, now: int | None, made: Sequence[Commit]) -> Foreign | None:
    """What was done behind the version; None where nothing was that changes a row, or that was taken back."""
    since = BEGINNING if since is None else since
    if now is None:
        return Foreign("it is gone", lost=True) if since > BEGINNING else None
    if now < since:
        return Foreign(f"it ends at version {now} and had version {since}", lost=True)
    strange, ours = _left(made, since)
    if not strange:
        return None
    first = strange[0]
    kept = any(version > first.version for version in ours) or first.version == 0
    lost = any(UNLISTED.search(one.operation) for one in strange)
    more = f", and {len(strange) - 1:,} more behind it" if len(strange) > 1 else ""
    return Foreign(f"{first}{more}", None if kept else first.version - 1, lost)


def _left(made: Sequence[Commit], since: int) -> tuple[list[Commit], list[int]]:
    """Of the commits behind `since`: those of others that nobody took back, and our versions. A RESTORE takes back what
    is behind its version, and is itself a loss where we wrote something there, unless it is ours: a snapshot that goes
    on behind a kill, and the hand-off, take out of a staged table what was appended too much (staged.py)."""
    strange: list[Commit] = []
    ours: list[int] = []
    for one in made:
        to = one.restored
        if to is not None and one.ours:
            strange = [other for other in strange if other.version <= to]
            ours = [version for version in ours if version <= to] + [one.version]
        elif to is not None and to >= since and not any(version > to for version in ours):
            strange = [other for other in strange if other.version <= to]
        elif one.ours and one.operation != "RESTORE":
            ours.append(one.version)
        else:
            strange.append(one)
    return strange, ours
