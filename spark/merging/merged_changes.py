"""The changes that the tables have: those that were landed and wait are in none of them yet."""

from __future__ import annotations

from pyspark.sql import DataFrame

from spark.lake.commits import commits
from spark.lake.lake import Lake
from spark.lake.merged import merged_to
from spark.snapshot.staged import WRITE


def merged_changes(lake: Lake, newest: int | None, last: int | None) -> DataFrame | None:
    """What the merge has done of `_changes`; None where that is nothing. `newest`: the version that counts; `last`: the
    one of the last run's status.

    Where files were rewritten or removed behind what was merged, by maintenance or an erasure, those of before may be
    gone: then it is all of the newest version."""
    known = [version for version in (last, merged_to(lake)) if version is not None]
    if newest is None or not known:
        return None
    merged = min(max(known), newest)
    more = commits(lake, lake.changes, merged, newest)
    only_added = len(more) == newest - merged and all(one.operation == WRITE for one in more)
    return lake.frame(lake.changes, merged if only_added else newest)
