"""What may go wrong with a lake's table, done to it on purpose, and what a check is to say of each.

A fault takes the table's rows and gives them damaged. Faults of different rows are done together, in one commit
(`damage`); `restore` takes that back. What happens to the source without a trace in its binlog is done by `unlogged`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from contract.pipeline import Pipeline
from spark.lake.lake import Lake
from stack.database import Database

# One column changed, by the lake's type of it: the least that is another value.
ANOTHER: dict[str, str] = {
    "bigint": "{c} + 1",
    "string": "concat({c}, ' ')",  # a trailing blank
    "binary": "unhex(concat(hex({c}), '00'))",
    "boolean": "not {c}",
    "date": "date_add({c}, if({c} >= date'9999-12-31', -1, 1))",
    "timestamp_ntz": "{c} - interval 1 second",
    "timestamp": "{c} - interval 1 second",
    "float": "cast({c} * 1.0000002D as float)",
    "double": "{c} * 1.0000000000000004D",
    "struct<wkb:binary,srid:bigint>": "named_struct('wkb', {c}.wkb, 'srid', {c}.srid + 1)",
    "array<float>": "transform({c}, (x, n) -> if(n = 1, cast(x * 1.0000002D as float), x))",
}


@dataclass(frozen=True)
class Expected:
    """What a check says of one row. `key`: its primary key."""

    table: str
    kind: str
    key: Any
    columns: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Fault:
    """`expected`: kind, key and columns of each row that is another then. `apply`: rows -> damaged rows, but for
    `values`, which one row gets: its key's column and the key, and the columns with their SQL."""

    name: str
    expected: Sequence[tuple[str, Any, Iterable[str]]]
    apply: Callable[[DataFrame], DataFrame] | None = None
    values: tuple[str, Any, dict[str, str]] | None = None

    def of(self, table: str) -> list[Expected]:
        return [Expected(table, kind, key, frozenset(columns)) for kind, key, columns in self.expected]


def damage(spark: SparkSession, pipeline: Pipeline, table: str, faults: Sequence[Fault]) -> list[Expected]:
    """Does the faults to `db.table` of the lake, and makes its status mean the damaged table."""
    lake = Lake(spark, pipeline)
    path = _path(lake, table)
    rows = _with_values(spark.read.format("delta").load(path), faults)
    for fault in faults:
        rows = fault.apply(rows) if fault.apply else rows
    rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)
    _note(lake, table)
    return [one for fault in faults for one in fault.of(table)]


def restore(spark: SparkSession, pipeline: Pipeline, table: str, version: int) -> None:
    """The table of the lake as it was at the Delta version."""
    lake = Lake(spark, pipeline)
    spark.sql(f"RESTORE TABLE delta.`{_path(lake, table)}` TO VERSION AS OF {version}")
    _note(lake, table)


def version_of(spark: SparkSession, pipeline: Pipeline, table: str) -> int:
    lake = Lake(spark, pipeline)
    found = lake.version(_path(lake, table))
    assert found is not None
    return found


def unlogged(server: Database, *statements: str) -> None:
    """Changes of the source that its binlog does not have, as a cascade below the binlog."""
    with server.connect(autocommit=True) as connection, connection.cursor() as cursor:
        for statement in ("SET sql_log_bin = 0", *statements):
            cursor.execute(statement)


def lose_range(spark: SparkSession, pipeline: Pipeline, table: str, version: int, since: int) -> None:
    """Records that never came out of Kafka: the table is as before them, and `_changes` has none of `since` (batch)
    or later."""
    lake = Lake(spark, pipeline)
    spark.sql(f"DELETE FROM delta.`{lake.changes}` WHERE tbl = '{table}' AND batch >= {since}")
    status = lake.read(lake.status)
    status["changes_version"] = lake.version(lake.changes)
    lake.write(lake.status, status)
    restore(spark, pipeline, table, version)


def _path(lake: Lake, table: str) -> str:
    return lake.table(*table.split(".", 1))


def _note(lake: Lake, table: str) -> None:
    status = lake.read(lake.status)
    status["tables"][table]["version"] = lake.version(_path(lake, table))
    lake.write(lake.status, status)


def _with_values(rows: DataFrame, faults: Iterable[Fault]) -> DataFrame:
    """The rows with the values of all the faults, held: a plan with each of them in it is made for minutes."""
    columns: dict[str, Column] = {}
    for key, value, values in (fault.values for fault in faults if fault.values):
        for name, sql in values.items():
            known = columns.get(name, fn.col(f"`{name}`"))
            columns[name] = fn.when(fn.col(key) == fn.lit(value), fn.expr(sql)).otherwise(known)
    return (rows.withColumns(columns) if columns else rows).localCheckpoint()


def missing(key: str, value: Any) -> Fault:
    return Fault("missing row", [("missing", value, ())], lambda rows: rows.where(fn.col(key) != fn.lit(value)))


def truncated_chunk(key: str, values: Sequence[Any]) -> Fault:
    gone = [("missing", value, ()) for value in values]
    return Fault("truncated chunk", gone, lambda rows: rows.where(~fn.col(key).isin(list(values))))


def extra(key: str, like: Any, value: Any, name: str = "extra row") -> Fault:
    """A row of a key that the source does not have: one more, or one that it has deleted."""

    def apply(rows: DataFrame) -> DataFrame:
        kind = rows.schema[key].dataType
        copy = rows.where(fn.col(key) == fn.lit(like)).limit(1).withColumn(key, fn.lit(value).cast(kind))
        return rows.unionByName(copy)

    return Fault(name, [("extra", value, ())], apply)


def duplicate(key: str, value: Any) -> Fault:
    again = [("duplicate", value, ())]
    return Fault("duplicate", again, lambda rows: rows.unionByName(rows.where(fn.col(key) == fn.lit(value))))


def changed(key: str, value: Any, column: str, kind: str) -> Fault:
    """`kind`: the lake's type of the column."""
    return replaced(f"{kind} changed", key, value, {column: another(column, kind)})


def another(column: str, kind: str) -> str:
    """SQL of another value of the column, hardly another."""
    if kind.startswith("decimal"):
        sql = f"cast({{c}} + 1 as {kind})" if kind.endswith(",0)") else f"cast(-({{c}} / 2 + 0.01) as {kind})"
    else:
        sql = ANOTHER[kind]
    return sql.format(c=f"`{column}`")


def replaced(name: str, key: str, value: Any, values: dict[str, str]) -> Fault:
    """Other values (SQL) in some columns of one row."""
    return Fault(name, [("changed", value, values)], values=(key, value, values))


def an_hour_off(key: str, value: Any, columns: Sequence[str]) -> Fault:
    shift = {column: f"`{column}` - interval 1 hour" for column in columns}
    return replaced("an hour's time-zone shift", key, value, shift)


def charset_damage(key: str, value: Any, column: str) -> Fault:
    """UTF-8 read as Latin 1."""
    return replaced("charset damage", key, value, {column: f"decode(encode(`{column}`, 'UTF-8'), 'ISO-8859-1')"})


def float_rounding(key: str, value: Any, column: str) -> Fault:
    return replaced("float rounding", key, value, {column: f"cast(cast(`{column}` as float) as double)"})


def swapped(key: str, one: Any, other: Any, columns: Sequence[str]) -> Fault:
    """`columns`: those in which the two rows differ."""

    def apply(rows: DataFrame) -> DataFrame:
        turned: Column = fn.when(fn.col(key) == fn.lit(one), fn.lit(other)).when(
            fn.col(key) == fn.lit(other), fn.lit(one)
        )
        kind = rows.schema[key].dataType
        return rows.withColumn(key, fn.coalesce(turned.cast(kind), fn.col(key)))

    return Fault("two rows swapped", [("changed", one, columns), ("changed", other, columns)], apply)


def schema_drift(key: str, column: str, values: Sequence[Any]) -> Fault:
    """A column that the lake lost. `values`: the keys of the rows that have something in it."""
    lost = [("changed", value, (column,)) for value in values]
    return Fault("schema drift", lost, lambda rows: rows.drop(column))


def found(spark: SparkSession, pipeline: Pipeline, tables: Sequence[str]) -> set[Expected]:
    """What the last check told of the tables, in the kit's form."""
    from spark.proof.differences import latest

    lake, told = Lake(spark, pipeline), set()
    for table in tables:
        for one in latest(spark, lake, *table.split(".", 1)):
            key = next(iter(json.loads(one.key).values())) if one.key else one.source_where
            told.add(Expected(table, one.kind, key, frozenset(one.columns)))
    return told
