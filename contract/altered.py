"""Statements that altered a table: what a column had before is in no change of a row that stayed as it was, so that a
time before shows what such a row has in it now."""

from __future__ import annotations

# Which rows of the lake's table `_schema_changes` these are, in SQL. One that makes the table alters none.
WHICH = "kind IN ('alter', 'shape') AND lower(trim(statement)) NOT LIKE 'create%'"


def note(name: str, statements: int, moment: str) -> str:
    """`name`: the table's; `statements`: how many came after the moment, which is written as its asker did."""
    how = "a statement" if statements == 1 else f"{statements:,} statements"
    return (
        f"{name} as of {moment}: {how} altered it later. A row that no change touched since has in altered columns "
        "what it has now, and NULL in dropped ones: the lake's table _schema_changes says which"
    )
