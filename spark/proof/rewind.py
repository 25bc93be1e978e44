"""A table's counts and checksums as of earlier commit boundaries, from the table as it is and `_changes`.

A change takes the hash of its before image out of the sum and puts that of its after image in. So the state
before a transaction is the state now, less what all the later changes did; and every row of the table
takes part, also those that changed meanwhile. It holds for each group of rows as for the whole: a chunk, or one key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, NamedTuple

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as fn

from contract.schema import TableSchema
from spark.proof.checksum import Total, halves, joined, row_hash
from spark.tables.rows import parsed, read_by, typed

Position = tuple[int, int, int]  # epoch, file number, byte position
Group = Any  # a chunk's number, a key's text
# Columns, each with a name, of the image in the struct of this name; the names of the columns that it has.
Of = Callable[[str, Sequence[str]], Sequence[SparkColumn]]
PLACE = ("epoch", "file", "pos")
PLACES = f"struct<{','.join(f'{name}:bigint' for name in PLACE)}>"
SPREAD = 1024  # of about so many transactions `some` has one
SHOWN, BETWEEN, BEHIND = 0, 1, 2


class Window(NamedTuple):
    """Of a read of a group. `shown`: it shows for certain what begins there or before it (None: that is not known);
    `high`: it does not show what begins there or behind it, which goes before."""

    shown: Position | None
    high: Position


@dataclass(frozen=True)
class Step:
    """What one transaction did to the table's groups. `gtid`: None for everything behind the window together. With a
    Window, what transactions before it did to a group is with the last of them, `at` and `gtid`."""

    at: Position
    gtid: str | None
    deltas: Mapping[Group, Total]


@dataclass(frozen=True)
class Past:
    """A table's changes since `low`. `changes`: its rows of `_changes`, written by the versions `shapes`; `schema`: the
    shape whose columns count; `lake`: the lake table's columns, name -> type."""

    changes: DataFrame
    shapes: Sequence[TableSchema]
    schema: TableSchema
    lake: Mapping[str, str]
    low: Position

    def steps(
        self,
        high: Position,
        group: Callable[[str], str],
        where: Callable[[str], str] | None = None,
        within: Mapping[int, Window] | None = None,
    ) -> list[Step]:
        """The transactions in order; those that begin at or after `high` as one last step. `group`, `where`: give the
        SQL of an image's group, and the condition on which it counts, from the name of its struct. `within`: the
        groups that are asked for, chunks' numbers, and of each where its transactions are wanted one by one."""

        def of(image: str, there: Sequence[str]) -> list[SparkColumn]:
            keyed = set(self.schema.key) <= set(there)
            counts = fn.lit(True) if where is None or not keyed else fn.expr(where(image))
            parts = halves(row_hash(self.schema.columns, there, image))
            told = fn.expr(group(image)) if keyed else fn.lit(None)
            return [told.alias("g"), counts.alias("counts"), *(p.alias(n) for p, n in zip(parts, "hl", strict=True))]

        images = self.images(of)
        if images is None:
            return []
        rows = images.where("counts").withColumn("part", fn.when(begins(high, ""), BEHIND).otherwise(BETWEEN))
        rows = rows if within is None else _parted(rows, within)
        at = fn.when(fn.col("part") == BETWEEN, fn.struct(*PLACE)).alias("at")
        last = fn.max(fn.struct(*PLACE, "gtid")).alias("last")
        sums = [fn.sum(fn.col("sign")).alias("n"), *(fn.sum(fn.col("sign") * fn.col(n)).alias(n) for n in "hl")]
        found = rows.groupBy("part", at, "g").agg(last, *sums)
        return _steps(found.select("part", "g", *"nhl", "last.*").collect(), high)

    def some(self, until: Position) -> list[tuple[Position, str]]:
        """The places and GTIDs of some of the transactions before `until`, in order; none without a GTID."""
        place = [fn.col(f"_seq.{name}").alias(name) for name in PLACE]
        rows = self.changes.where(begins(self.low) & ~begins(until)).select(*place, "gtid").where("gtid is not null")
        mine = rows.where(fn.pmod(fn.xxhash64(*PLACE), fn.lit(SPREAD)) == 0)
        return sorted(((row[0], row[1], row[2]), row[3]) for row in mine.distinct().collect())

    def images(self, of: Of) -> DataFrame | None:
        """A row an image: `epoch`, `file`, `pos`, `gtid`, `sign` (-1 of what was before, 1 of what is after), and what
        `of` makes of it. None without a shape."""
        later = self.changes.where(begins(self.low))
        shapes = read_by(later, self.shapes)
        parts = [self._images(later.where(fn.col("schema") == shape.version), shape, of) for shape in shapes]
        return reduce(DataFrame.unionByName, parts) if parts else None

    def lacks(self) -> str | None:
        """Why the changes since `low` may not lead back to it, in words; None where they do."""
        since, counting = self.changes.where(begins(self.low)), {column.name.lower() for column in self.schema.columns}
        known = {one.version: counting <= {column.name.lower() for column in one.columns} for one in self.shapes}
        own = max((version for version, whole in known.items() if whole), default=0)
        without = [version for version, whole in known.items() if not whole and version > own]
        if not since.where("op = 't'").isEmpty():
            return "the table was truncated"
        if without and not since.where(fn.col("schema").isin(without)).isEmpty():
            return "a column of the table was dropped"
        return None

    def _images(self, changes: DataFrame, shape: TableSchema, of: Of) -> DataFrame:
        names = ("before", "after")
        wire = changes.select("_seq", "gtid", *[parsed(name, shape.columns).alias(name) for name in names])
        images = [
            fn.when(fn.col(name).isNotNull(), fn.struct(*typed(name, shape, self.lake))).alias(name) for name in names
        ]
        there = [column.name for column in shape.columns]
        told = [
            fn.struct(fn.lit(sign).alias("sign"), fn.col(name).isNotNull().alias("there"), *of(name, there))
            for name, sign in zip(names, (-1, 1), strict=True)
        ]
        place = [fn.col(f"_seq.{name}").alias(name) for name in PLACE]
        rows = wire.select("_seq", "gtid", *images).select(*place, "gtid", fn.inline(fn.array(*told)))
        return rows.where("there").drop("there")


def begins(at: Position, struct: str = "_seq.") -> SparkColumn:
    """Whether the change's transaction begins at the position or after it."""
    here = fn.struct(*[fn.col(f"{struct}{name}") for name in PLACE])
    return here >= fn.struct(*[fn.lit(n).cast("bigint") for n in at])


def _parted(rows: DataFrame, within: Mapping[int, Window]) -> DataFrame:
    """Those of the groups, each with its `part` of the group's changes."""
    known = [(group, window.shown, window.high) for group, window in within.items()]
    windows = rows.sparkSession.createDataFrame(known, f"g bigint, shown {PLACES}, high {PLACES}")
    mine = rows.withColumn("g", fn.col("g").cast("bigint")).join(fn.broadcast(windows), "g")
    here = fn.struct(*PLACE)
    part = fn.when(here >= fn.col("high"), BEHIND).when(here <= fn.col("shown"), SHOWN).otherwise(BETWEEN)
    return mine.withColumn("part", part)


def _steps(rows: Iterable[Row], high: Position) -> list[Step]:
    deltas: dict[tuple[bool, Position], dict[Group, Total]] = {}
    gtids: dict[tuple[bool, Position], str | None] = {}
    for row in rows:
        behind = row["part"] == BEHIND
        at = (behind, high if behind else (row["epoch"], row["file"], row["pos"]))
        deltas.setdefault(at, {})[row["g"]] = Total(row["n"], joined(row["h"], row["l"]))
        gtids[at] = None if behind else row["gtid"]
    return [Step(at[1], gtids[at], deltas[at]) for at in sorted(deltas)]
