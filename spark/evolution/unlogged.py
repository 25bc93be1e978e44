"""Shapes that differ so that values which are stored may have changed, where no statement in the DDL topic says it: a
replica alone ran it, before it became the source."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from contract.checkpoint import OtherRules
from contract.schema import TableSchema
from contract.shown_by import chooses
from spark.evolution.schema_change_rows import AGAIN, Place, place
from spark.evolution.shape_changes import STALE, ShapeChange, shape_changes
from spark.evolution.state import Mark
from spark.evolution.statements import Statements
from spark.lake.stopped import Name
from spark.tables.schema import Schemas


def of_the_source(before: TableSchema, after: TableSchema, changes: list[ShapeChange]) -> list[ShapeChange]:
    """Those that may have changed values in the source, and not in what the pipeline file shows of them, which the
    checkpoint tells."""
    masks = {column.name.lower(): column.mask for column in before.columns}
    same = {c.name.lower() for c in after.columns if masks.get(c.name.lower(), c.mask) == c.mask}
    new = {column.name for column in after.columns if not column.nullable}
    return [one for one in changes if _filled(one, new) or _changed(one, same)]


def _filled(one: ShapeChange, not_null: set[str]) -> bool:
    """A new column that has a value in each row; that which may be NULL is so."""
    return one.kind == "added" and one.column in not_null


def _changed(one: ShapeChange, same: set[str]) -> bool:
    if one.kind == "renamed":  # of it nothing but the name is another
        return one.rule == STALE
    return one.rule == STALE and str(one.column).lower() in same and one.kind not in (AGAIN, "mask")


@dataclass(frozen=True)
class Explained:
    """What a run knows of that explains a difference. Each statement that may have changed rows has a mark of its own;
    `floors`, `applied`, `others`: as of Evolution.follow."""

    schemas: Schemas
    statements: Statements
    floors: Mapping[Name, list[int]]
    applied: Mapping[Name, TableSchema | None]
    others: Sequence[OtherRules]

    def by(self, mark: Mark) -> bool:
        """Whether there is a statement between the two shapes, maybe known since a later run only, or the table was
        read behind it, or is to be read again by the pipeline file's new rules."""
        begin = max((place(s) for s in self.schemas.all(*mark.name) if place(s) < mark.seq), default=mark.seq)
        logged = self.statements.altered_in(mark.name, begin, mark.seq)
        return logged or self._read_since(mark, begin) or self._shown_otherwise(mark, begin)

    def _read_since(self, mark: Mark, begin: Place) -> bool:
        """By a snapshot that had the new shape before a row's change told it."""
        if (read := self.applied.get(mark.name)) is None or tuple(self.floors.get(mark.name, [])[:3]) <= begin:
            return False
        after = [s for s in self.schemas.all(*mark.name) if place(s) == mark.seq]
        return bool(after) and not of_the_source(read, after[0], shape_changes(read, after[0]))

    def _shown_otherwise(self, mark: Mark, begin: Place) -> bool:
        """The status of a table with a snapshot of before says so, and that it is to be read again."""
        if not (floor := tuple(self.floors.get(mark.name, [])[:3])):
            return False
        mine = (one.until for one in self.others if chooses(one.tables, *mark.name))
        return any(begin <= until <= mark.seq and floor <= until for until in mine)
