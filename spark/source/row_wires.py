"""Rows of the source as the stream's wire values, column by column: what the texts of row_texts.py say, without the
JSON, which server and Spark would take longer to write and to parse than all else of a row.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as fn

from contract import types
from contract.names import quoted
from contract.pipeline_columns import Shown
from contract.schema import TableSchema
from spark.conditions import how_many
from spark.json_texts import LONG
from spark.source.row_texts import row_json, selected, too_long
from spark.source.source import Source


def wires_of(
    spark: SparkSession, source: Source, schema: TableSchema, wanted: list[str], within: str = ""
) -> DataFrame:
    """`key`, its text, and `_wire`, the struct that `rows.parsed` makes of a row's text, of the rows that `selected`
    gives. `schema`: the source's; the values are of what the pipeline shows of it."""
    shown = source.shown(schema)
    asked = columns_sql(shown, source.pipeline.source.flavor)
    rows = selected(spark, source, schema, wanted, within, asked)
    texts = [fn.col(name) for name in asked if name.startswith("w")]
    values = [_wire(text, types.of(c).wire).alias(c.name) for text, c in zip(texts, shown.schema.columns, strict=True)]
    missing = how_many([text.isNull() for text in texts])
    # A filter, behind which the struct is none any more where its values alone are asked for; the key by itself, which
    # then is not even read.
    whole = rows.where(fn.when(missing != fn.col("nulls"), too_long(schema)).otherwise(fn.lit(True)))
    key = fn.coalesce(fn.col("row_key"), too_long(schema))
    return whole.select(key.alias("key"), fn.struct(*values).alias("_wire"))


def columns_sql(shown: Shown, flavor: str) -> dict[str, str]:
    """Name -> SQL of what is asked of a row: its key's text, how many of its values are to come as NULL, and each of
    its values as w0, w1 .."""
    names = [column.name for column in shown.schema.columns]
    values = [shown.type_of(name, flavor).column_sql(quoted(name)) for name in names]
    asked = {"row_key": row_json(shown, flavor, shown.schema.key), "nulls": _nulls(shown)}
    return asked | {f"w{at}": value for at, value in enumerate(values)}


def _nulls(shown: Shown) -> str:
    """How many values of the row are to come as NULL. By the columns and not by their texts, which are NULL as well if
    they are too long."""
    hidden = [name for name, mask in shown.masks.items() if mask.kind == "null"]
    may_be = [c.name for c in shown.schema.columns if c.nullable and c.name not in hidden]
    return " + ".join([str(len(hidden)), *(f"({quoted(name)} is null)" for name in may_be)])


def _wire(text: Column, wire: str) -> Column:
    """A value's text as what Spark's from_json would make of it."""
    if "<" in wire:
        return fn.from_json(text, wire, {**LONG, "mode": "FAILFAST"})
    return text.cast(wire)
