"""What became of a table between the two statuses of one check: the first, with which it was compared, and that with
which the rows of the chunks that differed are told. Rows that are right by then may have been mended, and are no
finding.
"""

from __future__ import annotations

from contract.status import LakeStatus, TableStatus

GONE = "the lake gave it up"
SNAPSHOT = "a snapshot of it was applied"
PART = "a part of it was made anew"


def mended(name: str, before: LakeStatus, now: LakeStatus) -> str | None:
    """Why the table may be right where it was not, in words; None where nothing is known that would make it so."""
    table = now.tables.get(name)
    if table is None or table.version is None:
        return GONE
    if _snapshot(before.tables.get(name)) != _snapshot(table):
        return SNAPSHOT
    return PART if _parts(name, now) - _parts(name, before) else None


def _snapshot(table: TableStatus | None) -> str | None:
    return table.snapshot.id if table and table.snapshot else None


def _parts(name: str, status: LakeStatus) -> set[str]:
    """The table's parts that came to their place."""
    return {id for id, part in status.parts.items() if f"{part.db}.{part.table}" == name and part.refused is None}
