"""Rows that somebody else wrote into a table, equal to the source's, but with a `_seq` that no change can have: a merge
would take them for newer than the changes to come, or not know which of the two is."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from contract.sequence import FIELDS
from contract.steps import SNAPSHOT_TABLE
from spark.tables.merge import sequence

UNPLACED = (
    "This check found all of its rows equal, but some have an order (_seq) that no change can have, so that changes to "
    f"come would be left out: {SNAPSHOT_TABLE}"
)
LAST = 2**62  # behind every rows event of a transaction, and every row of it


def unplaced(rows: DataFrame, changes: DataFrame | None, read: Sequence[int]) -> bool:
    """Whether a row is such a one; `changes`, `read`: as of `behind_all`."""
    return not rows.where(orderless() | behind_all(changes, read)).isEmpty()


def orderless() -> Column:
    """Whether the row has no `_seq`, or not all of it."""
    return fn.greatest(*[fn.col(f"_seq.{name}").isNull() for name in FIELDS])


def behind_all(changes: DataFrame | None, read: Sequence[int]) -> Column:
    """Whether the row's `_seq` is behind all that the lake has of the table; null of one that is orderless. `changes`:
    the table's own of `_changes`; `read`: (epoch, file, position) of the place up to which the lake is whole, and may
    have more."""
    last = changes.agg(fn.max("_seq").alias("last")).first() if changes else None
    known = max([*read, LAST, LAST], [*last["last"]] if last and last["last"] else [])
    return fn.col("_seq") > sequence(known)
