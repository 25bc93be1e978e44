"""Which marks are open: those whose table is not read anew since, and may have other values than its changes tell."""

from __future__ import annotations

import re
from dataclasses import dataclass

from contract.schema import TableSchema
from spark.evolution.marking import BRINGS, Marking
from spark.evolution.schema_change_rows import place
from spark.evolution.shape_changes import keeps_values, shape_changes
from spark.evolution.state import Mark
from spark.evolution.statements import Statements
from spark.evolution.unlogged import Explained
from spark.tables.schema import Schemas

# Of what such differences leave as it is another column may be computed, from a member's number or a time's digits.
RECOMPUTED = ("widened", "members")
# So it may be by a collation, which no shape has, and which a column that is defined anew loses unless it is repeated.
COLLATES = re.compile(r"\b(modify|change|collate|character\s+set|charset)\b", re.IGNORECASE)
# Such words do more to rows than the types of the columns tell. FLOAT(7,2), which rounds, looks as FLOAT does.
MORE = re.compile(
    r"\b(generated|as|import|discard|ignore|convert|partition|exchange|rename)\b|\b(float[48]?|double|precision|real)\s*\(|"
    r"\.\.\.$",
    re.IGNORECASE,
)
# Of which the lake keeps the letters of before, and no value is another.
LETTERS = re.compile(
    r"\brename\s+column\s+(?:if\s+exists\s+)?`?([^`\s,]+)`?\s+to\s+`?\1`?(?=\s*(?:,|;|$))", re.IGNORECASE
)


@dataclass(frozen=True)
class OpenMarks:
    marking: Marking
    statements: Statements
    explained: Explained

    def has(self, mark: Mark) -> bool:
        if mark.kind not in BRINGS and mark.name not in self.marking.names:
            return False  # no snapshot has it after all: it was gone before its turn
        if tuple(self.marking.floors.get(mark.name, [])[:3]) > mark.seq:
            return False
        if mark.unlogged:
            return not self.explained.by(mark)
        # Columns that took each other's names are the same shape.
        if mark.kind != "alter" or mark.renamed or MORE.search(LETTERS.sub("", mark.statement)):
            return True
        shapes = around(self.marking.schemas, mark, self.statements)
        return shapes is None or _other_values(mark, *shapes)


def around(schemas: Schemas, mark: Mark, known: Statements) -> tuple[TableSchema, TableSchema] | None:
    """The shapes before and behind the statement, where it is the one between the two."""
    shapes = [s for s in schemas.all(*mark.name) if s.since is not None]
    before = [s for s in shapes if place(s) <= mark.seq]
    after = [s for s in shapes if place(s) > mark.seq]
    if not before or not after:
        return None
    between = known.between(mark.name, place(before[-1]), place(after[0]))
    return (before[-1], after[0]) if between == {mark.seq} else None


def _other_values(mark: Mark, before: TableSchema, after: TableSchema) -> bool:
    """Whether the ALTER TABLE between the shapes may have changed a stored value."""
    if {name.lower() for name in mark.dropped} & {one.name.lower() for one in after.columns}:
        return True  # a column that went with its values, and another that has its name
    changes = shape_changes(before, after)
    computed = any(one.kind in RECOMPUTED for one in changes) or COLLATES.search(mark.statement)
    return not keeps_values(changes) or (mark.computed and bool(computed))
