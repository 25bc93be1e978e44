"""Wire values -> typed columns: the one road of stream rows, snapshot rows and verification.

In: a DataFrame with a JSON text column and the TableSchema that the text was written by. Out: the same rows
with the table's columns in the lake's types. A text that does not parse by its schema is an error
(FAILFAST), never a silent null.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from contract import types
from contract.names import quoted
from contract.schema import Column, TableSchema
from spark.conditions import how_many
from spark.json_texts import LONG
from spark.tables.casts import cast

# Where Spark is to put a text that it cannot read: by default into a column called `_corrupt_record`, and one of a
# table's, of that name, is null then. The name of no column in the source ends with a blank.
READING = {"columnNameOfCorruptRecord": "unread ", **LONG}
FEW = 2  # versions of a table, which are all read rather than looked for
NO_KEY = "headrace-key-without-value"  # what the error of such a row says
NO_VALUE = "headrace-value-without-a-place"  # and of one that is to fail
ZERO = "-00"  # in the text of each zero or partial date, and in some other texts
ZERO_DATE = r'"[0-9]{4}-(00-[0-9]{2}|[0-9]{2}-00)[" T]'


def beside(name: str) -> str:
    """The name of a job's own column in rows that have a table's columns: one with a blank, which Delta refuses."""
    return f" {name}"


def wire_schema(columns: Iterable[Column]) -> str:
    """The schema by which from_json reads a row's text."""
    return ", ".join(f"{quoted(column.sent or column.name)} {types.of(column).wire}" for column in columns)


def wire(struct: str, column: Column) -> str:
    """The column's wire value in the struct of this name."""
    return f"{quoted(struct)}.{quoted(column.sent or column.name)}"


def parsed(json: str, columns: Iterable[Column], mode: str = "FAILFAST") -> SparkColumn:
    """The struct of wire values of the JSON text in the column named `json`; null where that is null."""
    return fn.from_json(fn.col(json), wire_schema(columns), {**READING, "mode": mode})


def typed(struct: str, schema: TableSchema, lake: Mapping[str, str] | None = None) -> list[SparkColumn]:
    """The lake's columns, made from the struct of wire values in the column named `struct`.

    `lake`: the lake table's columns, name -> type, where they may differ from the schema's. Only rows of an older
    shape do: there the source converted the values in an ALTER TABLE, and what does not convert was overwritten.
    """
    kinds = {name.lower(): kind for name, kind in (lake or {}).items()}
    columns = []
    for column in schema.columns:
        made = types.of(column)
        value = made.parse(wire(struct, column))
        kind = kinds.get(column.name.lower(), made.spark)
        columns.append(fn.expr(cast(value, made.spark, kind)).alias(column.name))
    return columns


def keyed(struct: str, schema: TableSchema, lake: Mapping[str, str] | None = None) -> list[SparkColumn]:
    """As `typed`; a row whose key is null in one of its columns raises: nothing would find it again. So does one with a
    value that the lake cannot hold, where that is to fail."""
    columns = []
    for column, value in zip(schema.columns, typed(struct, schema, lake), strict=True):
        if column.unfit == "fail":
            value = fn.when(_lost(struct, column), _refused(struct, schema, column)).otherwise(value)
        if column.name in schema.key:
            value = fn.when(value.isNull(), fn.raise_error(fn.lit(f"{NO_KEY} {column.name}"))).otherwise(value)
        columns.append(value.alias(column.name))
    return columns


def keys_of(texts: DataFrame, schema: TableSchema) -> DataFrame:
    """The key's columns of the JSON texts in the column `key`, each key once. What cannot be read as a key of this
    schema raises, as a null."""
    key = schema.of_key()
    return texts.withColumn("_wire", parsed("key", key.columns, "PERMISSIVE")).select(*keyed("_wire", key)).distinct()


def placed(texts: DataFrame, schema: TableSchema) -> DataFrame:
    """Those keys, JSON texts in the column `key`, whose values the lake's types can hold: no row there has another."""
    key = schema.of_key()
    unfit = [column for column in key.columns if types.may_not_fit(column)]
    read = texts.withColumn("_wire", parsed("key", key.columns, "PERMISSIVE"))
    lost = [fn.coalesce(_lost("_wire", column), fn.lit(False)) for column in unfit]
    return read.where(~reduce(or_, lost)).drop("_wire") if lost else texts


def _lost(struct: str, column: Column) -> SparkColumn:
    """Whether the wire value is one that the lake's type cannot hold."""
    value = wire(struct, column)
    return fn.expr(f"{value} is not null and {types.of(column).parse(value)} is null")


def _refused(struct: str, schema: TableSchema, column: Column) -> SparkColumn:
    key = fn.to_json(fn.struct(*[fn.col(f"{quoted(struct)}.{quoted(name)}").alias(name) for name in schema.key]))
    value = fn.col(wire(struct, column))
    return fn.raise_error(
        fn.concat(fn.lit(f"{NO_VALUE} <column {column.name}> <of the row "), key, fn.lit(" is "), value, fn.lit(">"))
    )


def maybe_zero(json: str) -> SparkColumn:
    """Whether a zero or partial date may be in the text; the cheap question first."""
    return fn.col(json).contains(ZERO) & fn.col(json).rlike(ZERO_DATE)


def nulled(rows: DataFrame, json: str, schema: TableSchema) -> int:
    """For how many values of the rows, JSON texts in the column named `json`, the lake has a null because its types
    cannot hold them."""
    columns = _unfit(schema)
    if not columns:
        return 0
    likely = rows.where(maybe_zero(json)).select(parsed(json, columns).alias("_wire"))
    found = likely.select(lost("_wire", schema).alias("n")).agg(fn.sum("n"))
    return int(found.collect()[0][0] or 0)


def lost(struct: str, schema: TableSchema) -> SparkColumn:
    """How many of the row's wire values, a struct in the column of this name, are null in the lake because its types
    cannot hold them."""
    return how_many([_lost(struct, column) for column in _unfit(schema)])


def values(schema: TableSchema, struct: str | None = None) -> SparkColumn:
    """How many values the row has in the columns whose values may become null: of the lake's, or of wire values in the
    struct. By the difference is told what `lost` tells, and no value is parsed twice."""
    names = [wire(struct, column) if struct else quoted(column.name) for column in _unfit(schema)]
    return how_many([fn.col(name).isNotNull() for name in names])


def read_by(changes: DataFrame, shapes: Sequence[TableSchema]) -> Sequence[TableSchema]:
    """Those of a table's versions by which any of the changes is, at least one of them where there are any: for each
    the changes are read once more, and a table may have had hundreds."""
    if len(shapes) <= FEW:
        return shapes
    there = {row["schema"] for row in changes.select("schema").distinct().collect()}
    return [shape for shape in shapes if shape.version in there] or shapes[-1:]


def _unfit(schema: TableSchema) -> list[Column]:
    """The columns whose values may become null."""
    return [column for column in schema.columns if types.may_not_fit(column) and column.unfit == "null"]
