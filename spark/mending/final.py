"""A part's rows as they are to be: those that were there at some place, and the changes of their keys behind it.

Pure: DataFrames in, DataFrames out. A change carries the whole row, so that of each key the last one counts alone, and
what was there before it does not.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from contract.names import quoted
from contract.schema import TableSchema
from contract.steps import SNAPSHOT_TABLE
from spark.errors import TableStoppedError
from spark.lake.keys import key_json
from spark.merging.parts import empty
from spark.proof.checksum import row_hash
from spark.proof.differences import CHANGED, DUPLICATE, EXTRA, MISSING
from spark.proof.unplaced import orderless
from spark.tables.merge import OP, latest, sequence, together
from spark.tables.rows import beside
from spark.tables.schema import OWN, Schemas

EQUAL = "equal"
# Of what is found beside a key: what kind of difference; the rows of the lake's; the hashes of both sides.
KIND, COUNT, LAKE, ROWS = beside("kind"), beside("n"), beside("lake"), beside("rows")


def folded(
    base: DataFrame, changes: DataFrame | None, shape: TableSchema, schemas: Schemas, columns: dict[str, str]
) -> DataFrame:
    """`base`: typed rows, as they were at a place; `changes`: those of the table behind it, if any. `columns`: the lake
    table's, name -> type. Raises TableStoppedError where the primary key became another one meanwhile."""
    name, ordered = (shape.db, shape.table), [*map(quoted, columns), *OWN]
    if changes is None:
        return base.select(*ordered)
    found = changes.groupBy("op", "schema").agg(fn.max("_seq").alias("last")).collect()
    if cut := max((list(row["last"]) for row in found if row["op"] == "t"), default=None):
        base, changes = empty(base), changes.where(fn.col("_seq") > sequence(cut))
    versions = sorted({row["schema"] for row in found if row["op"] != "t"})
    if not versions:
        return base.select(*ordered)
    shapes = [schemas.of(*name, version) for version in versions]
    _refuse_other_keys(shape, shapes)
    rows = widened(together(latest(changes.where("op <> 't'")), shapes, columns), columns)
    kept = base.join(rows.select(*map(quoted, shape.key)), list(shape.key), "left_anti")
    return kept.select(*ordered).unionByName(rows.where(fn.col(OP) != "d").select(*ordered))


def widened(rows: DataFrame, columns: dict[str, str]) -> DataFrame:
    """With a null in each of the columns that the rows lack."""
    present = {name.lower() for name in rows.columns}
    lacking = {name: kind for name, kind in columns.items() if name.lower() not in present}
    return rows.withColumns({name: fn.lit(None).cast(kind) for name, kind in lacking.items()})


def _refuse_other_keys(shape: TableSchema, shapes: Sequence[TableSchema]) -> None:
    key = [shape.column(name) for name in shape.key]
    if any([one.column(name) for name in one.key] != key for one in shapes):
        raise TableStoppedError(
            f"{shape.db}.{shape.table}: its primary key, or a type in it, changed meanwhile, so that keys of before "
            f"and after do not compare: {SNAPSHOT_TABLE}"
        )


def compared(lake: DataFrame, rows: DataFrame, shape: TableSchema, strange: Column | None = None) -> DataFrame:
    """The keys at which the lake's rows are not the rows that are to be: the key's columns, KIND, and the hashes of
    the other columns (spark/proof/checksum.py) on both sides: LAKE, ROWS. A row that somebody else wrote without an
    order, or that is `strange`, counts as changed, whatever it has: no later change would replace it."""
    odd = orderless() if strange is None else orderless() | strange
    ours = _hashed(lake, shape, LAKE, ~odd).groupBy(*map(quoted, shape.key)).agg(
        fn.count("*").alias(COUNT), fn.first(LAKE).alias(LAKE)
    )  # fmt: skip
    both = ours.join(_hashed(rows, shape, ROWS), list(shape.key), "full_outer")
    kind = (
        fn.when(fn.col(COUNT).isNull(), MISSING)
        .when(fn.col(ROWS).isNull(), EXTRA)
        .when(fn.col(COUNT) > 1, DUPLICATE)
        .when(~fn.col(LAKE).eqNullSafe(fn.col(ROWS)), CHANGED)
        .otherwise(EQUAL)
    )
    return both.withColumn(KIND, kind).where(fn.col(KIND) != EQUAL).drop(COUNT)


def _hashed(rows: DataFrame, shape: TableSchema, name: str, which: Column | None = None) -> DataFrame:
    """`which`: the rows that have any hash."""
    hashes = [row_hash([column], rows.columns) for column in shape.columns if column.name not in shape.key]
    made = fn.array(*hashes) if hashes else fn.array().cast("array<bigint>")
    return rows.select(*map(quoted, shape.key), (made if which is None else fn.when(which, made)).alias(name))


def differing(found: DataFrame, shape: TableSchema) -> DataFrame:
    """`found` as the audit has it: `key` (as records have it), `kind`, and of a changed row its `columns`, each with
    the hash of its value on both sides."""
    others = [column.name for column in shape.columns if column.name not in shape.key]
    pairs = [
        fn.struct(fn.lit(name).alias("name"), _hex(ROWS, at).alias("source"), _hex(LAKE, at).alias("lake"))
        for at, name in enumerate(others)
    ]
    shape_of = "array<struct<name:string,source:string,lake:string>>"
    each = fn.array(*pairs).cast(shape_of) if pairs else fn.array().cast(shape_of)
    changed = fn.filter(each, lambda one: one["source"] != one["lake"])
    told = fn.when(fn.col(KIND) == CHANGED, changed).otherwise(fn.array().cast(shape_of))
    return found.select(fn.expr(key_json(shape)).alias("key"), fn.col(KIND).alias("kind"), told.alias("columns"))


def _hex(side: str, at: int) -> Column:
    return fn.lpad(fn.lower(fn.hex(fn.get(side, fn.lit(at)))), 12, "0")
