"""Conditions made of many."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column
from pyspark.sql import functions as fn


def any_of(conditions: Sequence[Column]) -> Column:
    """Whether one of them holds; of none, none. As a tree of little depth: one by one, some hundreds of them would be
    deeper than Spark's stack."""
    if len(conditions) < 2:
        return conditions[0] if conditions else fn.lit(False)
    half = len(conditions) // 2
    return any_of(conditions[:half]) | any_of(conditions[half:])


def how_many(conditions: Sequence[Column]) -> Column:
    """How many of them hold, none of which is null: as such a tree, too, since a table may have a thousand columns."""
    return _sum(conditions).cast("int")


def _sum(conditions: Sequence[Column]) -> Column:
    """Of doubles: for each sum of integers Spark makes an object, to tell of one that is too large."""
    if len(conditions) < 2:
        return conditions[0].cast("double") if conditions else fn.lit(0.0)
    half = len(conditions) // 2
    return _sum(conditions[:half]) + _sum(conditions[half:])
