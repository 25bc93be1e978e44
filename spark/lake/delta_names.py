"""Columns called as Delta calls a column of its own, which it puts beside a table's while it merges or reads.

Some such names it has only where a table has deletion vectors: their tables are made without, and lose theirs when such
a column comes. With the others Delta merges no table, or reads none.
"""

from __future__ import annotations

from collections.abc import Iterable

from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from contract.names import quoted
from spark.failpoints import reached

VECTORS = "delta.enableDeletionVectors"
OF_VECTORS = {"filepath", "rowindexcol", "deletionvectorid", "_metadata"}
OF_MERGES = {
    "_row_id_", "_file_name_", "_source_row_present_", "_target_row_present_", "_row_dropped_",
    "__delta_internal_is_row_deleted", "_tmp_metadata_row_index",
}  # fmt: skip


def taken(column: str) -> bool:
    """Whether no table of the lake can have a column of this name."""
    return column.lower() in OF_MERGES


def may_have_vectors(columns: Iterable[str]) -> bool:
    """Whether a table of these columns may have deletion vectors."""
    return not OF_VECTORS & {name.lower() for name in columns}


def without_vectors(spark: SparkSession, path: str, columns: Iterable[str]) -> None:
    """Takes the deletion vectors away from the table where it is to have such a column; done before it has."""
    if may_have_vectors(columns):
        return
    [[properties]] = DeltaTable.forPath(spark, path).detail().select("properties").collect()
    if (properties or {}).get(VECTORS) == "true":
        table = f"delta.{quoted(path)}"
        spark.sql(f"REORG TABLE {table} APPLY (PURGE)").collect()
        reached("deletion vectors purged")
        spark.sql(f"ALTER TABLE {table} SET TBLPROPERTIES ('{VECTORS}' = 'false')")
        reached("deletion vectors ended")
