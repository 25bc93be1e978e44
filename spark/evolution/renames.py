"""Columns that an ALTER TABLE renamed, and did nothing else to: the lake's table is written anew from itself.

In: a statement of the DDL topic and the shapes around it, where they leave no doubt (evolution.py). Out: the table with
the new names, in one commit, which a run that died finds done. Changes of before have the old names: `in_lake` gives
their shapes the new ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from contract.lake_columns import nameable
from contract.names import quoted
from contract.renames import FILE, Rename, of, parse
from contract.schema import Column, TableSchema
from spark.evolution.shape_changes import shape_changes
from spark.failpoints import reached
from spark.lake.delta_names import without_vectors
from spark.lake.lake import Lake
from spark.tables.refused import own_fault
from spark.tables.schema import Schemas, columns_of


def renames_of(lake: Lake) -> list[Rename]:
    """Those that the lake's tables have."""
    return parse(lake.text(lake.at(FILE)))


def told_by(before: TableSchema, after: TableSchema, told: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """The renamed columns, where the shapes differ in nothing but the names that a statement `told`; else none. A key's
    column is none of them: its name is in the keys' texts."""
    changes = shape_changes(before, after)
    pairs = tuple((change.before, change.after) for change in changes)
    if any(change.kind != "renamed" for change in changes) or {*before.key} & {old for old, _ in pairs}:
        return ()
    return pairs if {_lower(pair) for pair in pairs} == {_lower(pair) for pair in told} else ()


def _lower(pair: tuple[str, str]) -> tuple[str, str]:
    return pair[0].lower(), pair[1].lower()


def rewritten(spark: SparkSession, lake: Lake, rename: Rename) -> bool:
    """Whether the lake's table, if there is one, has the new names now, and the old ones no more."""
    path = lake.table(rename.db, rename.table)
    if not lake.is_table(path):
        return True
    try:
        present = {name.lower(): name for name in columns_of(spark, path)}
        old, new = ({pair[side].lower() for pair in rename.columns} & present.keys() for side in (0, 1))
        if not old and len(new) == len(rename.columns):
            return True
        if new or len(old) < len(rename.columns) or not all(nameable(to) for _, to in rename.columns):
            return False  # it has a column of this name from another time, or not the one of before
        without_vectors(spark, path, [to for _, to in rename.columns])
        table = with_new_names(spark.read.format("delta").load(path), [rename])
        table.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)
    except Exception as error:
        if own_fault(lake, (rename.db, rename.table), error) is None:
            raise
        return False
    reached("columns renamed")
    return True


def with_new_names(rows: DataFrame, renames: Iterable[Rename]) -> DataFrame:
    """The rows of a table with the names that its columns got; what has no such column stays."""
    for rename in renames:
        to = {old.lower(): new for old, new in rename.columns}
        there = {name.lower() for name in rows.columns}
        names = [new if (new := to.get(name.lower())) and new.lower() not in there else name for name in rows.columns]
        rows = rows.select(*[fn.col(quoted(name)).alias(now) for name, now in zip(rows.columns, names, strict=True)])
    return rows


def as_now(schema: TableSchema, renames: Iterable[Rename]) -> TableSchema:
    """A shape of before the renames with the names since; `sent` tells by which its records have the columns. One that
    has them already, of rows that were read behind the statement, stays."""
    columns: Sequence[Column] = schema.columns
    for rename in renames:
        there, to = {column.name.lower() for column in columns}, {old.lower(): new for old, new in rename.columns}
        if not there & {new.lower() for new in to.values()}:
            columns = [_named(column, to.get(column.name.lower())) for column in columns]
    return schema.model_copy(update={"columns": tuple(columns)})


def _named(column: Column, name: str | None) -> Column:
    return column.model_copy(update={"name": name, "sent": column.sent or column.name}) if name else column


def in_lake(lake: Lake, shapes: Iterable[TableSchema]) -> Schemas:
    """The shapes of the schema topic as the lake's tables have them now."""
    known = renames_of(lake)
    return Schemas(
        as_now(one, [rename for rename in of(known, one.db, one.table) if one.version < rename.version])
        for one in shapes
    )


def since(known: Iterable[Rename], schema: TableSchema, place: Sequence[int]) -> list[Rename]:
    """Those of the schema's table at or behind the place: epoch, file number, position."""
    return [rename for rename in of(known, schema.db, schema.table) if rename.seq >= tuple(place[:3])]
