"""What was mended from the source has no change that says it: of such a row nothing can be made from changes."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from contract import names
from contract.schema import TableSchema
from spark.lake.applied import Applied
from spark.lake.lake import Lake
from spark.merging.parts import MYSQL, Part, parts, was_taken
from spark.tables.merge import sequence
from spark.tables.rows import keys_of
from spark.tables.schema import OWN

P0 = "p0"  # the column that says as of when the mended rows are; earlier versions of Headrace did not note it


def mended(spark: SparkSession, lake: Lake, part: Part, applied: Applied) -> int:
    """How many of the part's rows were, since that snapshot of the table began. Of rows that an earlier version of
    Headrace noted the time alone is known, by a clock that may have been set back."""
    if (mine := _of(spark, lake, part.shape)) is None:
        return 0
    snapshot = _column(mine, "snapshot", "string") == applied.id
    later = _column(mine, P0, OWN["_seq"]) > sequence(applied.floor)
    known = fn.coalesce(later, fn.lit(False)) | fn.coalesce(snapshot, fn.unix_millis("at") >= applied.applied_at)
    return part.inside(spark, lake)(keys_of(mine.where(known).select("key"), part.shape)).count()


def keys_behind(spark: SparkSession, lake: Lake, schema: TableSchema, p0: Sequence[int]) -> DataFrame | None:
    """The keys' columns of the rows that were read, and put in their place, behind that place; None where nothing was
    mended yet. Not of parts that are still staged, and were never taken: those are put in their place, or refused,
    behind all else."""
    if (mine := _of(spark, lake, schema)) is None or P0 not in mine.columns:
        return None
    staged = [part.id for part in parts(lake) if not was_taken(lake, part)]
    mine = mine.where((fn.col(P0) > sequence(p0)) & ~fn.col("run").isin(staged))
    return keys_of(mine.select("key").distinct(), schema)


def _of(spark: SparkSession, lake: Lake, schema: TableSchema) -> DataFrame | None:
    path = lake.at(names.REPAIRS)
    if not lake.is_table(path):
        return None
    rows = spark.read.format("delta").load(path)
    rows = rows.where((fn.col("tbl") == f"{schema.db}.{schema.table}") & (fn.col("source") == MYSQL))
    return rows.where(~_keyless())


def _keyless() -> Column:
    """Of a row without a key, which somebody else had written into the lake's table: no row of the source is that."""
    values = fn.map_values(fn.from_json("key", "map<string,string>"))
    return fn.coalesce(fn.exists(values, lambda value: value.isNull()), fn.lit(False))


def _column(rows: DataFrame, name: str, kind: str) -> Column:
    return fn.col(name) if name in rows.columns else fn.lit(None).cast(kind)
