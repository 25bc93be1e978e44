"""What was mended from the source has no change that says it: of such a row nothing can be made from changes."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from contract import names
from spark.applied import Applied
from spark.lake import Lake
from spark.mending.parts import MYSQL, Part
from spark.rows import keys_of


def mended(spark: SparkSession, lake: Lake, part: Part, applied: Applied) -> int:
    """How many of the part's rows were, since that snapshot of the table. Of rows that an earlier version of Headrace
    noted the time alone is known, by a clock that may have been set back."""
    path = lake.at(names.REPAIRS)
    if not lake.is_table(path):
        return 0
    rows = spark.read.format("delta").load(path)
    mine = rows.where((fn.col("tbl") == ".".join(part.name)) & (fn.col("source") == MYSQL))
    snapshot = fn.col("snapshot") if "snapshot" in rows.columns else fn.lit(None).cast("string")
    mine = mine.where(fn.coalesce(snapshot == applied.id, fn.unix_millis("at") >= applied.applied_at))
    return part.inside(spark, lake)(keys_of(mine.select("key"), part.shape)).count()
