"""Rows that a repair or a backfill took from the source: no change says what they were before, so that a time before
shows them as they are now."""

from __future__ import annotations

SOURCE = "mysql"  # in the column `source` of the lake's table `_repairs`


def note(name: str, rows: int, moment: str) -> str:
    """`name`: the table's; `rows`: how many were mended after the moment, which is written as its asker did."""
    were, those = ("row was", "It has") if rows == 1 else ("rows were", "They have")
    return (
        f"{name} as of {moment}: {rows:,} {were} mended from the source later. {those} the mended values there, too, "
        "unless a change came in between: the lake's table _repairs says which, and since when"
    )
