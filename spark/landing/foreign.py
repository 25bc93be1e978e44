"""What somebody else did to the lake's tables since the last run: every commit of Headrace's jobs says that it is one.

Of a current table that is told, with the way to make it whole; the run goes on, and a check shows what it did. The
table is marked until that is settled (foreign_marks.py). A change in `_changes` would become a change of the tables, so
there the run stops before anything of it is merged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from contract import steps
from contract.schema import TableSchema
from contract.status import LakeStatus
from spark.errors import LakeError
from spark.lake.applied import Applied, AppliedSnapshots
from spark.lake.commits import removed
from spark.lake.foreign_commits import BEGINNING, UNLISTED, Foreign, done, rows_of
from spark.lake.lake import Lake
from spark.lake.manifests import Manifest, manifests
from spark.lake.merged import merged_to
from spark.lake.stopped import Name
from spark.snapshot.staged import StagedRows
from spark.tables.refused import own_fault
from spark.tables.schema import at

THREADS = 16  # tables looked at side by side


@dataclass(frozen=True)
class Looked:
    """`_changes` up to a `version` in which nothing is of others; None where there is no such table. `merged`: the
    version up to which the last run merged it, None before the first. `undone`: whether between the two somebody else
    wrote, which was taken back: the commits there are not all ours, but for those of `ours`. `unlisted`: the commits
    there that took lost files out of the log."""

    version: int | None
    merged: int | None = None
    undone: bool = False
    ours: tuple[int, ...] = ()
    unlisted: tuple[int, ...] = ()


def look(lake: Lake, last: LakeStatus | None) -> Looked:
    """Raises LakeError where somebody else wrote into `_changes` since the last run, or took it away."""
    merged = last.changes_version if last else merged_to(lake)
    version = lake.version(lake.changes, merged)
    if version == merged:
        return Looked(version, merged)
    rows = rows_of(lake, lake.changes, merged, version)
    made = [one for one in rows if not UNLISTED.search(one.operation)]
    if found := done(lake, lake.changes, merged, version, made):
        raise LakeError(
            f"somebody else than Headrace's jobs changed {lake.changes}: {found.did}. Nothing of that was merged. "
            f"{_back(lake, found)}"
        )
    ours = tuple(one.version for one in made if one.ours and one.restored is None)
    unlisted = tuple(one.version for one in rows if UNLISTED.search(one.operation))
    return Looked(version, merged, len(ours) < len(made), ours, unlisted)


def lost_of(lake: Lake, unlisted: Iterable[int]) -> set[str | None]:
    """Of which tables somebody took lost files out of `_changes`, by these commits; None of one that does not say."""
    return {name for version in unlisted for name in removed(lake, lake.changes, version, "tbl")}


def _back(lake: Lake, found: Foreign) -> str:
    if not lake.is_table(lake.changes):
        return "Put it back from a copy; then run this again"
    if found.before is not None:
        return f"Take that back: RESTORE TABLE {at(lake.changes)} TO VERSION AS OF {found.before}; then run this again"
    return (
        "Changes that a run landed would go with it, so it cannot be taken back: move the folder "
        f"{lake.root} away and {steps.snapshot(lake.pipeline)}, which makes the lake anew"
    )


@dataclass(frozen=True)
class Found:
    """Current tables. `told`: of those that somebody else changed or took away, what to do about it. `versions`: up to
    which each was looked at, None where it is not there. `gone`: those that are not what they were, lack rows of lost
    files, or are not there at all."""

    told: dict[Name, str] = field(default_factory=dict)
    versions: dict[Name, int | None] = field(default_factory=dict)
    gone: set[Name] = field(default_factory=set)

    def without(self, names: Iterable[Name]) -> Found:
        """Not telling of tables that were made anew since."""
        told = {name: told for name, told in self.told.items() if name not in {*names}}
        return Found(told, self.versions, self.gone - {*names})


def foreign_writes(lake: Lake, since: Mapping[Name, int | None], quiet: Set[Name] = frozenset()) -> Found:
    """`since`: the version behind which nobody looked yet, of each current table; None where that is not known.
    `quiet`: those that were looked at a moment ago, and not written by us since. Of these it is asked alone whether
    there is more by now; where one is gone, or has less, the next run sees it."""
    found = Found()
    with ThreadPoolExecutor(THREADS) as pool:  # on S3 each look is a request or two, of which the time goes by waiting
        looked = pool.map(lambda name: _look_at(lake, name, since[name], name in quiet), since)
        for name, (version, done) in zip(since, looked, strict=True):
            found.versions[name] = version
            if done and done.lost:
                found.gone.add(name)
            if done:
                found.told[name] = (
                    f"somebody else than Headrace's jobs changed the lake's table {'.'.join(name)}: {done.did}. "
                    f"{steps.CHECK_SHOWS}; to make the table anew, {steps.SNAPSHOT_TABLE}"
                )
    return found


def _look_at(lake: Lake, name: Name, behind: int | None, quiet: bool) -> tuple[int | None, Foreign | None]:
    """Up to which version, and what was done behind the other."""
    if lake.pipeline.changes_only(*name):  # there are no rows to be changed
        return None, None
    path, there = lake.table(*name), behind if behind != BEGINNING else None
    if quiet and behind is not None and not lake.goes_on(path, behind):
        return there, None
    version = lake.version(path, there)
    if behind is None or version == there:
        return version, None
    return version, done(lake, path, behind, version, rows_of(lake, path, behind, version))


def since_last(lake: Lake, last: LakeStatus) -> dict[Name, int | None]:
    """Behind the last run, or behind the snapshot that a run applied and died."""
    snapshots, since = AppliedSnapshots(lake), dict[Name, int | None]()
    moved = _moved(lake, {(t.db, t.table) for t in last.tables.values()} - {*snapshots.tables})
    for table in last.tables.values():
        name = table.db, table.table
        applied = None if snapshots.gap(name) else snapshots.tables.get(name)
        if name in moved:
            since[name] = moved[name]
        elif applied is None or (table.snapshot and table.snapshot.id == applied.id):
            since[name] = BEGINNING if table.version is None and applied is None else table.version
        else:
            since[name] = applied.version
    return since


def _moved(lake: Lake, names: Set[Name]) -> dict[Name, int]:
    """Of the tables that have no snapshot: those whose place the staged rows of one took in a run that died before it
    was noted, and the version of these rows that was counted. The log is another than the last run's, and ours."""
    staged = [(one, schema) for one in manifests(lake) for schema in one.tables if (schema.db, schema.table) in names]
    return {(schema.db, schema.table): one.counted(schema) for one, schema in staged if _is_moved(lake, one, schema)}


def _is_moved(lake: Lake, manifest: Manifest, schema: TableSchema) -> bool:
    name = schema.db, schema.table
    try:
        return StagedRows(lake.spark, lake, manifest.rows(lake, schema), manifest.id).moved_to(lake.table(*name))
    except Exception as error:
        if own_fault(lake, name, error) is None:
            raise
        return False  # the hand-off tells what is wrong with it, and the other tables go on


def since_looked(seen: Found, applied: Mapping[Name, Applied], names: Iterable[Name]) -> dict[Name, int | None]:
    """Of one run's end: behind what was `seen` at its beginning, or behind the snapshot that it has `applied`."""
    begun = {name: BEGINNING if version is None else version for name, version in seen.versions.items()}
    return {name: applied[name].version if name in applied else begun.get(name, BEGINNING) for name in names}


def forget_lost(snapshots: AppliedSnapshots, gone: Iterable[Name]) -> None:
    """Tables that are gone lack what their snapshot had, also where changes have made them again: they count as not
    snapshotted."""
    for name in gone:
        if name in snapshots.tables:
            snapshots.note(name, snapshots.tables[name].model_copy(update={"gap": True}))
