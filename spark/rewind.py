"""A table's count and checksum as of earlier commit boundaries, from the table as it is and `_changes`.

A change takes the hash of its before image out of the sum and puts that of its after image in. So the state
before a transaction is the state now, less what all the later changes did; and every row of the table
takes part, also those that changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Row
from pyspark.sql import functions as fn

from contract.schema import TableSchema
from spark.checksum import Total, halves, joined, row_hash
from spark.rows import parsed, typed

Position = tuple[int, int, int]  # epoch, file number, byte position


@dataclass(frozen=True)
class Step:
    """What one transaction did to the table. `gtid`: None for everything behind the window together."""

    at: Position
    gtid: str | None
    delta: Total


def steps(
    changes: DataFrame,
    shapes: Iterable[TableSchema],
    schema: TableSchema,
    lake: Mapping[str, str],
    low: Position,
    high: Position,
) -> list[Step]:
    """The table's transactions after `low`, in order; those that begin at or after `high` as one last step.
    `changes`: the table's rows of `_changes`, written by the versions `shapes`; `schema`: the shape whose columns
    count; `lake`: the lake table's columns, name -> type."""
    later = changes.where(_begins(low))
    parts = [_deltas(later.where(fn.col("schema") == shape.version), shape, schema, lake) for shape in shapes]
    if not parts:
        return []
    behind = _begins(high)
    place = [fn.when(~behind, fn.col(f"_seq.{name}")).alias(name) for name in ("epoch", "file", "pos")]
    gtid = fn.max(fn.when(~behind, fn.col("gtid"))).alias("gtid")
    sums = [fn.sum(name).alias(name) for name in ("n", "h", "l")]
    found = reduce(DataFrame.unionByName, parts).groupBy(*place).agg(gtid, *sums).collect()
    return sorted((_step(row, high) for row in found), key=lambda step: (step.gtid is None, step.at))


def _step(row: Row, high: Position) -> Step:
    at = high if row["epoch"] is None else (row["epoch"], row["file"], row["pos"])
    return Step(at, row["gtid"], Total(row["n"], joined(row["h"], row["l"])))


def _begins(at: Position) -> SparkColumn:
    """Whether the change's transaction begins at the position or after it."""
    here = fn.struct(fn.col("_seq.epoch"), fn.col("_seq.file"), fn.col("_seq.pos"))
    return here >= fn.struct(*[fn.lit(n).cast("bigint") for n in at])


def _deltas(changes: DataFrame, shape: TableSchema, schema: TableSchema, lake: Mapping[str, str]) -> DataFrame:
    """Per change what it adds to the rows (`n`) and to the halves of the sum (`h`, `l`)."""
    wire = changes.select("_seq", "gtid", *[parsed(name, shape.columns).alias(name) for name in ("before", "after")])
    images = [
        fn.when(fn.col(name).isNotNull(), fn.struct(*typed(name, shape, lake))).alias(name)
        for name in ("before", "after")
    ]
    rows, there = wire.select("_seq", "gtid", *images), [column.name for column in shape.columns]
    out, into = (_image(name, schema, there) for name in ("before", "after"))
    deltas = [(plus - minus).alias(name) for name, plus, minus in zip(("n", "h", "l"), into, out, strict=True)]
    return rows.select("_seq", "gtid", *deltas)


def _image(name: str, schema: TableSchema, present: list[str]) -> list[SparkColumn]:
    """Row count and hash halves of an image; zeros where there is none."""
    high, low = halves(row_hash(schema.columns, present, name))
    return [fn.when(fn.col(name).isNull(), 0).otherwise(value) for value in (fn.lit(1), high, low)]
