"""The shapes that are new since the last run: what differs, and what that does to a table's rows and past."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from contract.breaks import Break
from contract.renames import Rename, Spelling
from contract.schema import Column, TableSchema
from spark.evolution import breaks
from spark.evolution.read_anew import read_anew
from spark.evolution.schema_change_rows import AGAIN, of_shape, place
from spark.evolution.shape_changes import ALONE, CARRIED, STALE, ShapeChange, shape_changes
from spark.evolution.state import Mark, mark_of, unlogged
from spark.evolution.unlogged import of_the_source
from spark.lake.stopped import Name


@dataclass(frozen=True)
class Shape:
    """A table's new version: the rows of what differs, the marks that it gives, what it does to the table's past."""

    name: Name
    version: int
    rows: list[dict[str, Any]]
    marks: list[Mark]
    breaks: list[Break]
    spellings: list[Spelling]


@dataclass(frozen=True)
class History:
    """All versions of a table's shape, the oldest first, of which `done` were followed by runs before. `renames`: those
    that the lake has carried out. `changes_only`: the lake has no rows of it. `applied`: by which shape its snapshot's
    rows are shown, from the `floor` on."""

    shapes: Sequence[TableSchema]
    done: int
    renames: Sequence[Rename]
    changes_only: bool
    applied: TableSchema | None
    floor: list[int]

    def new(self) -> Iterator[Shape]:
        had: dict[str, Column] = {}  # each column that the lake has by now, as it was last
        for before, after in zip([None, *self.shapes[:-1]], self.shapes, strict=True):
            gone = self._renamed(after.version)
            if after.version > self.done:
                yield self._shape(before, after, had, gone)
            had = {column: was for column, was in had.items() if column not in gone}
            had |= {column.name.lower(): column for column in after.columns}
        last = self.shapes[-1]
        if read := read_anew(last, self.applied, self.floor):
            changes = [_ruled(one, had, set()) for one in shape_changes(last, read)]
            yield _of(last, [], [], *_past(last, read, changes, had))

    def _shape(
        self, before: TableSchema | None, after: TableSchema, had: Mapping[str, Column], gone: set[str]
    ) -> Shape:
        changes = [_ruled(one, had, gone) for one in shape_changes(before, after)] if before else []
        marks = [mark_of(after, one) for one in changes if one.kind == AGAIN]
        if before and not self.changes_only and (silent := of_the_source(before, after, changes)):
            marks.append(unlogged(after, silent))
        rows = [of_shape(after, replace(one, rule=ALONE) if self.changes_only else one) for one in changes]
        return _of(after, rows, marks, *_past(before, after, changes, had))

    def _renamed(self, version: int) -> set[str]:
        """The old names, in lower case, of the columns that have new ones in the lake since that version."""
        return {old.lower() for one in self.renames if one.version == version for old, _ in one.columns}


def _of(
    shape: TableSchema, rows: list[dict[str, Any]], marks: list[Mark], broken: list[Break], spellings: list[Spelling]
) -> Shape:
    return Shape((shape.db, shape.table), shape.version, rows, marks, broken, spellings)


def _ruled(change: ShapeChange, had: Mapping[str, Column], renamed: set[str]) -> ShapeChange:
    """What two shapes do not tell: a column that the lake has from a time before, whose old values are not the new
    column's; and one that has its new name in the lake."""
    if change.kind == "renamed" and str(change.column).lower() in renamed:
        return replace(change, rule=CARRIED)
    if change.kind != "added" or str(change.column).lower() not in had:
        return change
    return replace(change, kind=AGAIN, rule=STALE)


def _past(
    before: TableSchema | None, after: TableSchema, changes: list[ShapeChange], had: Mapping[str, Column]
) -> tuple[list[Break], list[Spelling]]:
    if before is None:
        return [], []
    # A column that comes back has no values of before, and those of the one of its name are none of its.
    lost_names = any((one.kind, one.rule) in (("renamed", STALE), (AGAIN, STALE)) for one in changes)
    broken = breaks.of_shape(before, after, place(after), lost_names, had)
    return [broken] if broken else [], list(breaks.spellings(before, after))
