"""A table's count and checksum as of earlier commit boundaries, from the table as it is and `_changes`.

A change takes the hash of its before image out of the sum and puts that of its after image in. So the state
before a transaction is the state now, less what all the later changes did; and every row of the table
takes part, also those that changed meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from contract.schema import TableSchema
from spark.checksum import Total, halves, joined, row_hash
from spark.rows import parsed, typed
from spark.schema import fitted

Position = tuple[int, int, int]  # epoch, file number, byte position


@dataclass(frozen=True)
class Step:
    """What one transaction did to the table. `gtid`: None for everything behind the window together."""

    at: Position
    gtid: str | None
    delta: Total


def steps(
    changes: DataFrame, shapes: Iterable[TableSchema], schema: TableSchema, lake: dict[str, str], low: Position,
    high: Position,
) -> list[Step]:  # fmt: skip
    """The table's transactions after `low`, in order; those that begin at or after `high` as one last step.
    `changes`: the table's rows of `_changes`, written by the versions `shapes`; `schema`: the shape whose columns
    count; `lake`: the lake table's types."""
    later = changes.where(_begins(low))
    parts = [_deltas(later.where(fn.col("schema") == shape.version), shape, schema, lake) for shape in shapes]
    if not parts:
        return []
    behind = _begins(high)
    place = [fn.when(~behind, fn.col(f"_seq.{name}")).alias(name) for name in ("epoch", "file", "pos")]
    found = (
        reduce(DataFrame.unionByName, parts)
        .groupBy(*place)
        .agg(fn.max(fn.when(~behind, fn.col("gtid"))).alias("gtid"), *[fn.sum(c).alias(c) for c in ("n", "h", "l")])
        .collect()
    )
    last = (high[0], high[1], high[2])
    known = [
        Step(
            (row["epoch"], row["file"], row["pos"]) if row["epoch"] is not None else last,
            row["gtid"],
            Total(row["n"], joined(row["h"], row["l"])),
        )
        for row in found
    ]
    return sorted(known, key=lambda step: (step.gtid is None, step.at))


def _begins(at: Position) -> SparkColumn:
    """Whether the change's transaction begins at the position or after it."""
    here = fn.struct(fn.col("_seq.epoch"), fn.col("_seq.file"), fn.col("_seq.pos"))
    return here >= fn.struct(*[fn.lit(n).cast("bigint") for n in at])


def _deltas(changes: DataFrame, shape: TableSchema, schema: TableSchema, lake: dict[str, str]) -> DataFrame:
    """Per change image: rows and hash halves, taken out for a before image and put in for an after image."""
    images = [_image(changes, shape, schema, lake, name, sign) for name, sign in (("before", -1), ("after", 1))]
    return images[0].unionByName(images[1])


def _image(
    changes: DataFrame, shape: TableSchema, schema: TableSchema, lake: dict[str, str], name: str, sign: int
) -> DataFrame:
    rows = changes.where(fn.col(name).isNotNull()).withColumn("_wire", parsed(name, shape.columns))
    seq = rows.select(fn.struct("_seq", "gtid").alias("_change"), *typed("_wire", shape))
    fit = fitted(seq, lake)
    high, low = halves(row_hash(schema.columns, fit.columns), sign)
    return fit.select("_change.*", fn.lit(sign).alias("n"), high.alias("h"), low.alias("l"))
