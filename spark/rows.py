"""Wire values -> typed columns: the one road of stream rows, snapshot rows and verification.

In: a DataFrame with a JSON text column and the TableSchema that the text was written by. Out: the same rows
with the table's columns in the lake's types. A text that does not parse by its schema is an error
(FAILFAST), never a silent null.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as fn

from contract import types
from contract.schema import Column, TableSchema

NO_KEY = "headrace-key-without-value"  # what the error of such a row says


def quoted(name: str) -> str:
    """A name as Spark SQL has it."""
    return "`" + name.replace("`", "``") + "`"


def wire_schema(columns: Iterable[Column]) -> str:
    """The schema by which from_json reads a row's text."""
    return ", ".join(f"{quoted(column.name)} {types.of(column).wire}" for column in columns)


def parsed(json: str, columns: Iterable[Column], mode: str = "FAILFAST") -> SparkColumn:
    """The struct of wire values of the JSON text in the column named `json`; null where that is null."""
    return fn.from_json(fn.col(json), wire_schema(columns), {"mode": mode})


def typed(struct: str, schema: TableSchema, lake: Mapping[str, str] | None = None) -> list[SparkColumn]:
    """The lake's columns, made from the struct of wire values in the column named `struct`.

    `lake`: the lake table's columns, name -> type, where they may differ from the schema's. Only rows of an older
    shape do: there the source converted the values in an ALTER TABLE, and what does not convert was overwritten.
    """
    kinds = {name.lower(): kind for name, kind in (lake or {}).items()}
    columns = []
    for column in schema.columns:
        made = types.of(column)
        value = made.parse(f"{quoted(struct)}.{quoted(column.name)}")
        kind = kinds.get(column.name.lower(), made.spark)
        columns.append(fn.expr(value if kind == made.spark else f"try_cast({value} as {kind})").alias(column.name))
    return columns


def keyed(struct: str, schema: TableSchema, lake: Mapping[str, str] | None = None) -> list[SparkColumn]:
    """As `typed`; a row whose key is null in one of its columns raises: nothing would find it again."""
    columns = []
    for column, value in zip(schema.columns, typed(struct, schema, lake), strict=True):
        if column.name in schema.key:
            value = fn.when(value.isNull(), fn.raise_error(fn.lit(f"{NO_KEY} {column.name}"))).otherwise(value)
        columns.append(value.alias(column.name))
    return columns
