"""What our own commits added to `_changes` since the last merge, where those between are not all ours."""

from __future__ import annotations

from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from spark.conditions import any_of
from spark.lake.commits import partitions
from spark.lake.lake import Lake
from spark.landing.foreign import Looked


def landed_since(lake: Lake, looked: Looked) -> DataFrame:
    """What is there and was not when the last run had merged it: the commits between tell of changes that somebody
    wrote or removed, too. Of the partitions alone to which commits of ours added since."""
    changes = lake.frame(lake.changes, looked.version)
    if looked.merged is None:
        return changes
    added = set().union(*(partitions(lake, lake.changes, version) for version in looked.ours))
    there = any_of([_in(partition) for partition in added])
    known = lake.frame(lake.changes, looked.merged).where(there).select("tbl", "_seq")
    return changes.where(there).join(known, ["tbl", "_seq"], "left_anti")


def _in(partition: tuple[tuple[str, str | None], ...]) -> Column:
    """As Delta's log has it, in which each value is a text."""
    parts = [fn.col(name).cast("string").eqNullSafe(fn.lit(value)) for name, value in partition]
    return reduce(Column.__and__, parts, fn.lit(True))
