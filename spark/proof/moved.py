"""A table's first snapshot whose staged rows took the place of the table's own, with a log of their own: a version of a
status of before is there one that has some of the rows."""

from __future__ import annotations

from contract.status import LakeStatus
from spark.lake.applied import AppliedSnapshots
from spark.lake.lake import Lake
from spark.lake.stopped import Name
from spark.snapshot.staged import moved_from


def moved(lake: Lake, name: Name, status: LakeStatus) -> bool:
    """Whether that happened since the status, also in a run that died before it was noted."""
    table = status.tables.get(".".join(name))
    if table is None or table.snapshot is not None:
        return False
    snapshots = AppliedSnapshots(lake)
    if snapshots.gap(name):
        return False  # it had one before
    return name in snapshots.tables or moved_from(lake, lake.table(*name)) is not None
