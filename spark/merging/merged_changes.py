"""The changes that the tables have: those that were landed and wait are in none of them yet."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from spark.lake.commits import added, commits
from spark.lake.lake import Lake
from spark.lake.merged import merged_to
from spark.snapshot.staged import WRITE


def merged_changes(lake: Lake, newest: int | None, last: int | None) -> DataFrame | None:
    """What the merge has done of `_changes`; None where that is nothing. `newest`: the version that counts; `last`: the
    one of the last run's status.

    Where files were rewritten or removed behind what was merged, by maintenance or an erasure, nothing tells the two
    apart: then it is all of the newest version."""
    known = [version for version in (last, merged_to(lake)) if version is not None]
    if newest is None or not known:
        return None
    merged, frame = min(max(known), newest), lake.frame(lake.changes, newest)
    more = commits(lake, lake.changes, merged, newest)
    if len(more) < newest - merged or any(one.operation != WRITE for one in more):
        return frame
    # Not the version itself: Delta may have no log of it any more.
    waiting = {name for one in more for name in added(lake, lake.changes, one.version)}
    return frame.where(~fn.col("_metadata.file_name").isin(waiting)) if waiting else frame
