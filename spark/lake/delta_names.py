"""Columns called as Delta calls a column of its own where a table has deletion vectors: their tables are made without,
and lose theirs when such a column comes. (With other such names Delta merges no table: contract/lake_columns.py.)
"""

from __future__ import annotations

from collections.abc import Iterable

from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from contract.names import quoted
from spark.failpoints import reached
from spark.lake.marked_rows import purged

VECTORS = "delta.enableDeletionVectors"
OF_VECTORS = {"filepath", "rowindexcol", "deletionvectorid", "_metadata"}


def may_have_vectors(columns: Iterable[str]) -> bool:
    """Whether a table of these columns may have deletion vectors."""
    return not OF_VECTORS & {name.lower() for name in columns}


def without_vectors(spark: SparkSession, path: str, columns: Iterable[str]) -> None:
    """Takes the deletion vectors away from the table where it is to have such a column; done before it has."""
    if may_have_vectors(columns):
        return
    [[properties]] = DeltaTable.forPath(spark, path).detail().select("properties").collect()
    if (properties or {}).get(VECTORS) == "true":
        purged(spark, path)
        reached("deletion vectors purged")
        spark.sql(f"ALTER TABLE delta.{quoted(path)} SET TBLPROPERTIES ('{VECTORS}' = 'false')")
        reached("deletion vectors ended")
