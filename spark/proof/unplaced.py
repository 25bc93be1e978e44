"""Rows that somebody else wrote into a table, equal to the source's, but with a `_seq` that no change can have: a merge
would take them for newer than the changes to come, or not know which of the two is."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame
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
    """Whether a row's `_seq` is none, or behind all that the lake has of the table. `changes`: the table's own of
    `_changes`; `read`: (epoch, file, position) of the place up to which the lake is whole, and may have more."""
    last = changes.agg(fn.max("_seq").alias("last")).first() if changes else None
    known = max([*read, LAST, LAST], [*last["last"]] if last and last["last"] else [])
    none = fn.greatest(*[fn.col(f"_seq.{name}").isNull() for name in FIELDS])
    return not rows.where(none | (fn.col("_seq") > sequence(known))).isEmpty()
