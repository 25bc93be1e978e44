"""A table of the lake made of a snapshot's staged rows: those, but for the ones whose key has a change since P0 that is
merged, or was mended from the source since, and the table's own rows that are newer.

Written as one commit of the table; or, the first time, when nobody goes back to a version of it, by the staged table
taking its place: so its rows are written once.
"""

from __future__ import annotations

from delta.tables import DeltaTable
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from contract.names import quoted
from contract.schema import TableSchema
from spark.failpoints import reached
from spark.lake.delta_names import without_vectors
from spark.lake.lake import Lake
from spark.merging.mended import keys_behind
from spark.snapshot.staged import MERGE, WRITE, StagedRows
from spark.tables.merge import behind, sequence
from spark.tables.rows import beside, keys_of
from spark.tables.schema import OWN, columns_of, fields, fitted, prepare

THERE = beside("there")


def movable(spark: SparkSession, lake: Lake, schema: TableSchema) -> bool:
    """Whether the staged table has all columns that the lake's is to have, by their names."""
    path, wanted = lake.table(schema.db, schema.table), {name.lower() for name in fields(schema)}
    if lake.pipeline.lake.bucket or any(column.sent not in (None, column.name) for column in schema.columns):
        return False
    return not lake.is_table(path) or wanted >= {name.lower() for name in columns_of(spark, path)}


def by_move(
    spark: SparkSession, lake: Lake, staged: StagedRows, schema: TableSchema, p0: list[int], changes: DataFrame | None
) -> None:
    """`changes`: those that are merged, of all tables. Done again, also by a run that finds the table gone already, it
    has the same result."""
    path = lake.table(schema.db, schema.table)
    changed, known = _changed(spark, lake, schema, p0, changes).persist(), _last_own(lake, staged, path)
    try:
        while True:
            # What is behind it, a driver appended that was thought dead.
            staged.back_to(known)
            known = lake.version(staged.path) or 0
            if not changed.isEmpty():
                _take_in(spark, staged, schema, p0, changed)
            if WRITE not in staged.operations(known):
                break
    finally:
        changed.unpersist()
    lake.replace(path, staged.path)


def _last_own(lake: Lake, staged: StagedRows, path: str) -> int:
    """The version of the staged table that has the rows that were counted; where a run that died had the lake's table
    gone, with what it had taken in of that one, which is nowhere else."""
    behind = [] if lake.is_table(path) else staged.operations(staged.counted)
    merges = [at for at, operation in enumerate(behind, staged.counted + 1) if operation == MERGE]
    return max([staged.counted, *merges])


def _take_in(spark: SparkSession, staged: StagedRows, schema: TableSchema, p0: list[int], changed: DataFrame) -> None:
    there = f"c.{quoted(THERE)}"
    same = " and ".join(f"t.{quoted(name)} = c.{quoted(name)}" for name in schema.key)
    values: dict[str, str | Column] = {quoted(name): f"c.{quoted(name)}" for name in (*fields(schema), *OWN)}
    (
        DeltaTable.forPath(spark, staged.path)
        .alias("t")
        .merge(changed.alias("c"), same)
        # Not what an earlier run took in of a table that is gone by now.
        .whenMatchedDelete((fn.col("t._seq") <= sequence(p0)) & fn.col(there).isNull())
        .whenMatchedUpdate(f"{there} and t._seq < c._seq", values)
        .whenNotMatchedInsert(there, values)
        .execute()
    )
    reached("newer rows taken in")


def by_write(
    spark: SparkSession, lake: Lake, rows: DataFrame, schema: TableSchema, p0: list[int], changes: DataFrame | None,
    readable: bool,
) -> None:  # fmt: skip
    """`rows`: the staged ones; `changes`: as of `by_move`. `readable`: whether the table's own rows count, else none of
    them stays."""
    path, wanted = lake.table(schema.db, schema.table), fields(schema)
    if not DeltaTable.isDeltaTable(spark, path):
        prepare(spark, path, schema, schema, lake.deletion_vectors)
    present = columns_of(spark, path)
    known = {name.lower() for name in wanted}
    # The snapshot's types are the table's from now on; a column that the source dropped stays.
    columns = {**wanted, **{name: kind for name, kind in present.items() if name.lower() not in known}}
    current = fitted(spark.read.format("delta").load(path), columns)
    newer = current.where(fn.col("_seq") > sequence(p0)) if readable else current.limit(0)
    if readable:
        # The newer ones too: of a part that is still staged the table may have the rows already.
        key = newer.select(*map(quoted, schema.key))
        superseded = _keys_after(spark, lake, schema, p0, changes)
        rows = rows.join(key if superseded is None else superseded.unionByName(key), list(schema.key), "left_anti")
    together = newer.unionByName(rows, allowMissingColumns=True)
    table = together.select(*map(quoted, columns), *OWN)
    without_vectors(spark, path, columns)
    table.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)


def _changed(
    spark: SparkSession, lake: Lake, schema: TableSchema, p0: list[int], changes: DataFrame | None
) -> DataFrame:
    """One row a key that was changed since P0: the table's own, where it has one, whole and THERE, else the key."""
    path, wanted, key = lake.table(schema.db, schema.table), fields(schema), list(schema.key)
    if lake.is_table(path):
        current = spark.read.format("delta").load(path)
        rows = fitted(current, wanted).where(fn.col("_seq") > sequence(p0))
    else:
        rows = spark.createDataFrame(
            [], ", ".join(f"{quoted(name)} {kind}" for name, kind in {**wanted, **OWN}.items())
        )
    lacking = {name: kind for name, kind in wanted.items() if name.lower() not in map(str.lower, rows.columns)}
    rows = rows.withColumns({name: fn.lit(None).cast(kind) for name, kind in lacking.items()} | {THERE: fn.lit(True)})
    superseded = _keys_after(spark, lake, schema, p0, changes)
    return rows if superseded is None else rows.join(superseded, key, "full_outer")


def _keys_after(
    spark: SparkSession, lake: Lake, schema: TableSchema, p0: list[int], changes: DataFrame | None
) -> DataFrame | None:
    """The keys' columns of the changes behind P0, and of the rows that were mended from the source as of a place behind
    it; None where there are none."""
    mended = keys_behind(spark, lake, schema, p0)
    if changes is None:
        return mended
    rows = behind(changes, (schema.db, schema.table), p0).where(fn.col("op") != "t")
    # By value: where ALTER TABLE changed a key column meanwhile, the texts of one key differ. What cannot be read as
    # the snapshot's key is of another key.
    changed = keys_of(rows.select("key").distinct(), schema)
    return changed if mended is None else changed.unionByName(mended).distinct()
