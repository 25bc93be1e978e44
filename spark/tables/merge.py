"""The merge itself: changes of some schema versions -> typed rows, one a key -> into a lake table."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import reduce
from typing import Any

from delta.tables import DeltaTable
from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as fn

from contract.names import quoted
from contract.schema import TableSchema
from contract.sequence import FIELDS
from contract.steps import SNAPSHOT_TABLE
from spark.errors import chain, reason
from spark.failpoints import reached
from spark.lake.broken import broken_file
from spark.lake.stopped import Name
from spark.tables.rows import NO_KEY, NO_VALUE, beside, keyed, parsed

OP = beside("op")
TOLD: set[str] = set()  # lines of rows that do not fit
# What Spark says of a value that does not fit its column's type.
UNFIT = (
    "MALFORMED_RECORD_IN_PARSING", "CAST_INVALID_INPUT", "NUMERIC_VALUE_OUT_OF_RANGE", "CAST_OVERFLOW",
    "DATATYPE_MISMATCH",
)  # fmt: skip


def sequence(numbers: Iterable[int]) -> Column:
    """A `_seq` from its numbers."""
    return fn.struct(*[fn.lit(n).cast("bigint").alias(name) for n, name in zip(numbers, FIELDS, strict=True)])


def behind(changes: DataFrame, name: Name, place: list[int]) -> DataFrame:
    """The table's rows of `_changes` whose `_seq` is greater."""
    db, table = name
    mine = changes.where((fn.col("tbl") == f"{db}.{table}") & (fn.col("db") == db))
    # Said by single fields too, which lets Delta pass by the files that are older.
    mine = mine.where(fn.col("_seq.epoch") >= place[0])
    mine = mine.where((fn.col("_seq.epoch") > place[0]) | (fn.col("_seq.file") >= place[1]))
    return mine.where(fn.col("_seq") > sequence(place))


def latest(changes: DataFrame) -> DataFrame:
    """One change a key: the one of the greatest `_seq`."""
    newest = Window.partitionBy("key").orderBy(fn.col("_seq").desc())
    return changes.withColumn("_n", fn.row_number().over(newest)).where("_n = 1").drop("_n")


def as_rows(changes: DataFrame, schema: TableSchema, lake: dict[str, str]) -> DataFrame:
    """Changes written by one schema version, as typed rows with OP, `_seq`, `_ts` before them. A delete has
    its key's columns alone. `lake`: the table's columns, name -> type."""
    # The key's text is an object too: the row of a delete, as far as the merge needs it.
    image = changes.withColumn("_row", fn.when(fn.col("op") == "d", fn.col("key")).otherwise(fn.col("after")))
    wire = image.withColumn("_wire", parsed("_row", schema.columns))
    return wire.select(fn.col("op").alias(OP), "_seq", fn.col("ts").alias("_ts"), *keyed("_wire", schema, lake))


def misfit(name: Name, error: BaseException) -> str | None:
    """Why the rows do not fit their table, and the way back; None for another failure. It goes to the status, to alerts
    and their webhook, where no erasure looks, so that the job's log alone gets a row's values."""
    db, table = name
    told, why = "\n".join(chain(error)), reason(error)
    if found := re.search(rf"{NO_VALUE} <(column .*?)> <(.*)>", told):
        _tell(f"{db}.{table}: {found[1]} {found[2]}")
        return (
            f"{db}.{table}: {found[1]} of a row has a value that no type of the lake's can hold (the job's log "
            "names the row and the value), and lake.unrepresentable is fail. Give the row a whole date; or set "
            f"lake.unrepresentable to null, or to string and {SNAPSHOT_TABLE}"
        )
    if NO_KEY in told:
        return (
            f"{db}.{table}: a row's primary key has no value in the lake (a zero or partial date, or a key that is no "
            f"longer of its column's type): {why}. Give such rows a whole date if there are any, then "
            f"{SNAPSHOT_TABLE}, or exclude it"
        )
    if unfitting := unfit(name, error):
        return unfitting
    if isinstance(error, AnalysisException) and broken_file(error) is None:
        return (
            f"{db}.{table}: Spark cannot write the lake's table ({why}). Where that names a column, Spark or Delta has "
            "one of the same name: rename it, leave it out (columns.exclude), or exclude the table"
        )
    return None


def unfit(name: Name, error: BaseException) -> str | None:
    """As `misfit`, of rows that are read alone."""
    if (kind := next((word for word in UNFIT if word in "\n".join(chain(error))), None)) is None:
        return None
    _tell(f"{'.'.join(name)}: {reason(error)}")
    return (
        f"{'.'.join(name)}: a value does not fit its column's type ({kind}; the job's log has what Spark says of it). "
        f"When the schema topic and the table agree, {SNAPSHOT_TABLE}"
    )


def _tell(line: str) -> None:
    """Once in a process: a looping compaction tries a stopped table in each round."""
    if line not in TOLD:
        print(line, flush=True)
    TOLD.add(line)


def merge(spark: SparkSession, path: str, changes: DataFrame, key: Iterable[str], columns: list[str]) -> int:
    """Merges one change a key (OP, `_seq`, `_ts`, columns). Gives how many rows more the table has."""
    present = {name.lower() for name in changes.columns}
    values: dict[str, str | Column] = {
        quoted(name): f"c.{quoted(name)}" if name.lower() in present else "null" for name in columns
    }
    values |= {"_seq": "c._seq", "_ts": "c._ts"}
    op = f"c.{quoted(OP)}"
    same = " and ".join(f"t.{quoted(name)} = c.{quoted(name)}" for name in key)
    done: Any = (
        DeltaTable.forPath(spark, path)
        .alias("t")
        .merge(changes.alias("c"), same)
        .whenMatchedDelete(f"{op} = 'd' and c._seq > t._seq")
        .whenMatchedUpdate("c._seq > t._seq", values)
        .whenNotMatchedInsert(f"{op} <> 'd'", values)
        .execute()
    )
    reached("table merged")
    counts = done.first()
    return int(counts["num_inserted_rows"] - counts["num_deleted_rows"])


def together(changes: DataFrame, schemas: list[TableSchema], columns: dict[str, str]) -> DataFrame:
    """Changes of several schema versions as rows of one shape."""
    if len(schemas) == 1:
        return as_rows(changes, schemas[0], columns)
    rows = [as_rows(changes.where(fn.col("schema") == s.version), s, columns) for s in schemas]
    return reduce(lambda some, more: some.unionByName(more, allowMissingColumns=True), rows)
