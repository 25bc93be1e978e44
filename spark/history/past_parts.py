"""The parts of a table's past: between two statements that took or brought rows without a change of any row, versions
of rows follow each other; over such a statement none goes on. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from contract.breaks import Break, Place

PART = "_part"  # the number of a change's part, from 0


class Parts:
    """`broken`: of one table, the oldest first; `time_of`: when what stands behind a place begins, None of nothing."""

    def __init__(self, broken: Iterable[Break], time_of: Callable[[Place], datetime | None]) -> None:
        self._ends = [one for one in broken if one.ends]
        self._time_of = time_of

    def numbered(self, changes: DataFrame) -> DataFrame:
        places = fn.array(*[_struct(one.seq) for one in self._ends])
        here = fn.struct("_seq.epoch", "_seq.file", "_seq.pos")
        part = fn.size(fn.filter(places, lambda place: place <= here)) if self._ends else fn.lit(0)
        return changes.withColumn(PART, part)

    @property
    def last(self) -> Column:
        """The changes of the last part, of which the table's present rows are."""
        return fn.col(PART) == len(self._ends)

    @property
    def ended(self) -> Column:
        """When the change's part ended; null of the last one."""
        # By a clock that had gone back, it may be before the change.
        at = fn.get(fn.array(*[fn.lit(self._end(one)).cast("timestamp") for one in self._ends]), fn.col(PART))
        return fn.when(at.isNotNull(), fn.greatest(at, "ts")) if self._ends else fn.lit(None).cast("timestamp")

    def _end(self, one: Break) -> datetime | None:
        return datetime.fromtimestamp(one.ts_ms / 1000, UTC) if one.ts_ms else self._time_of(one.seq)


def _struct(place: Place) -> Column:
    names = ("epoch", "file", "pos")
    return fn.struct(*[fn.lit(n).cast("bigint").alias(name) for name, n in zip(names, place, strict=True)])
