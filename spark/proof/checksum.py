"""The hash of a row, the same in MySQL and in Spark, and its sums.

A row's hash is the first 48 bits of the SHA-256 of its values' texts (`~` for NULL, else `=` and the text of
contract/types.py, a unit separator between; before the `=` of a text that may have such a separator stand its bytes'
number, so that no two rows have one line). A table's checksum is the sum of its rows' hashes: a row more, less
or other changes it, whatever the order; equal rows do not cancel out as they would in an XOR.

A VECTOR has no text that both sides agree on: rows with one are hashed by Spark on both sides.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from contract import types
from contract.names import quoted
from contract.pipeline_columns import Shown
from contract.schema import Column, TableSchema
from spark.source import chunks

LOW_BITS = 24  # hashes are summed in two halves: a sum of whole ones would leave 64 bits after 32,768 rows


class Total(NamedTuple):
    """Rows and the sum of their hashes."""

    rows: int = 0
    sum: int = 0

    def plus(self, other: Total) -> Total:
        return Total(self.rows + other.rows, self.sum + other.sum)

    def minus(self, other: Total) -> Total:
        return Total(self.rows - other.rows, self.sum - other.sum)


def sum_of(totals: Iterable[Total]) -> Total:
    counts, sums = 0, 0
    for total in totals:
        counts, sums = counts + total.rows, sums + total.sum
    return Total(counts, sums)


def hashed_by_source(shown: Shown) -> bool:
    """Whether MySQL itself can hash the table's rows: no column is a VECTOR."""
    return all(shown.type_of(column.name, "mysql").checksum_sql for column in shown.schema.columns)


def source_texts(shown: Shown, names: Iterable[str], flavor: str, spelled: Callable[[str], str] = quoted) -> list[str]:
    """SQL of the flavor: the columns' texts as they are hashed. `spelled`: a column by its name, in the statement."""
    texts = []
    for name in names:
        column, kind = spelled(name), shown.type_of(name, flavor)
        assert kind.checksum_sql is not None  # hashed_by_source; no key has a VECTOR
        text = kind.checksum_sql(column)
        size = f"length({text}), " if kind.free else ""
        texts.append(f"if({kind.missing_sql(column)}, '~', concat({size}'=', {text}))")
    return texts


def source_sql(shown: Shown, flavor: str = "mysql", where: str = "", number: str = "") -> str:
    """SQL of the flavor that gives rows and checksum of the table, or of its rows `where`, in one consistent read;
    with `number`, an expression over its columns, first the number, and a row for each."""
    line = f"concat_ws(char(31 using utf8mb4), {', '.join(source_texts(shown, _names(shown), flavor))})"
    hashed = f"cast(conv(left(sha2({line}, 256), 12), 16, 10) as unsigned)"
    what = f"{number}, " if number else ""
    chosen = f" WHERE {where}" if where else ""
    grouped = " GROUP BY 1" if number else ""
    table = chunks.table_sql(shown.source)
    return f"SELECT {what}count(*), coalesce(sum({hashed}), 0) FROM {table}{chosen}{grouped}"


def _names(shown: Shown) -> list[str]:
    return [column.name for column in shown.schema.columns]


def lake_texts(columns: Iterable[Column], present: Iterable[str], struct: str = "") -> list[str]:
    """The same texts in Spark SQL, of typed columns; a column that is not `present` counts as NULL. `struct`: the
    column that holds them, if they are not the row's own."""
    names = {name.lower() for name in present}
    texts = []
    for column in columns:
        name = (quoted(struct) + "." if struct else "") + quoted(column.name)
        kind = types.of(column)
        text = (kind.checksum_spark or "cast({} as string)".format)(name)
        size = f"octet_length({text}), " if kind.free else ""
        texts.append(f"nvl(concat({size}'=', {text}), '~')" if column.name.lower() in names else "'~'")
    return texts


def row_hash(columns: Iterable[Column], present: Iterable[str], struct: str = "") -> SparkColumn:
    """The hash (bigint) of typed columns, as of `lake_texts`."""
    line = f"concat_ws('\\u001f', {', '.join(lake_texts(columns, present, struct))})"
    return fn.expr(f"cast(conv(substr(sha2({line}, 256), 1, 12), 16, 10) as bigint)")


def halves(number: SparkColumn) -> tuple[SparkColumn, SparkColumn]:
    return fn.shiftright(number, LOW_BITS), number.bitwiseAND((1 << LOW_BITS) - 1)


def joined(high: int | None, low: int | None) -> int:
    return ((high or 0) << LOW_BITS) + (low or 0)


def total(rows: DataFrame, schema: TableSchema) -> Total:
    """The rows' count and checksum over the schema's columns."""
    return totals(rows, schema, fn.lit(0)).get(0, Total())


def totals(rows: DataFrame, schema: TableSchema, group: SparkColumn) -> dict[Any, Total]:
    """The same of each group of rows."""
    found = grouped(rows, schema, group).collect()
    return {row["g"]: Total(row["n"], joined(row["h"], row["l"])) for row in found}


def grouped(rows: DataFrame, schema: TableSchema, group: SparkColumn) -> DataFrame:
    """`g`, `n` rows of it, and the halves `h` and `l` of the sum of their hashes."""
    high, low = halves(row_hash(schema.columns, rows.columns))
    sums = [fn.count("*").alias("n"), fn.sum(high).alias("h"), fn.sum(low).alias("l")]
    return rows.groupBy(group.alias("g")).agg(*sums)
