"""The values of changes that are long past, in the types and by the names of the lake's table as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from contract import breaks
from contract.breaks import Break
from contract.names import quoted
from contract.renames import Rename, sent
from spark.tables.rows import READING

WIRE = {"struct<wkb:binary,srid:bigint>": "struct<wkb:string,srid:bigint>", "array<float>": "array<double>"}
GEOMETRY = "if({x} is null, null, named_struct('wkb', unbase64({x}.wkb), 'srid', {x}.srid))"
JSON = {**READING, "mode": "FAILFAST"}
MAY_NOT_PARSE = ("date", "timestamp", "timestamp_ntz")  # zero and partial dates are null in the lake


def value_sql(wire: str, kind: str) -> str:
    """Spark SQL of the lake's value of type `kind`, from the text of the wire value (or its parts)."""
    if kind == "binary":
        return f"unbase64({wire})"
    if kind.startswith("struct"):
        return GEOMETRY.format(x=wire)
    return f"try_cast({wire} as {kind})" if kind in MAY_NOT_PARSE else f"cast({wire} as {kind})"


@dataclass(frozen=True)
class PastValues:
    """Of one table. `spellings`: of its columns, with capital letters that are others now."""

    renames: Sequence[Rename]
    breaks: Sequence[Break]
    spellings: Sequence[str]

    def parsed(self, changes: DataFrame, now: DataFrame, *names: str) -> DataFrame:
        """With a struct of wire values, `_<name>`, for each of the columns of JSON text; of a column that was renamed,
        by the name that it had in the change."""
        kinds = {name.lower(): (name, kind) for name, kind in now.dtypes}
        older = {old: kind for name, kind in now.dtypes for _, old in self._sent(name)}
        kinds = {old.lower(): (old, kind) for old, kind in older.items()} | kinds
        shape = ", ".join(f"{quoted(name)} {WIRE.get(kind, 'string')}" for name, kind in kinds.values())
        found = changes.withColumns({f"_{n}": fn.from_json(fn.col(n), shape, JSON) for n in names})
        for name in names:
            made = fn.col(f"_{name}")
            for column, kind in now.dtypes:
                value = self._in_changes(name, column, kind)
                made = made if value is None else made.withField(quoted(column), value)
            found = found.withColumn(f"_{name}", made)
        for struct in (f"_{n}" for n in names if n != "key"):
            made = fn.col(struct)  # each value from the struct as it came: a name may be another column's by now
            for name, _ in now.dtypes:
                made = made.withField(quoted(name), self._value(struct, name)) if self._sent(name) else made
            found = found.withColumn(struct, made)
        return found

    def _in_changes(self, text: str, column: str, kind: str) -> Column | None:
        """A column's value where the changes have it otherwise than by its name and type of now, else None."""
        value, wire = fn.col(f"_{text}.{quoted(column)}"), WIRE.get(kind, "string")
        others = [name for name in self.spellings if name != column and name.lower() == column.lower()]
        for name in others:
            told = fn.from_json(fn.col(text), f"{quoted(name)} {wire}", JSON)
            value = fn.coalesce(value, told.getField(name))
        version = breaks.another_form(self.breaks, column) if text != "key" else 0
        if version:
            value = fn.when(fn.col("schema") >= version, value)
        return value if others or version else None

    def _value(self, struct: str, column: str) -> Column:
        """By the name that the column had in each change."""
        value = fn.col(f"{struct}.{quoted(column)}")
        for version, old in reversed(self._sent(column)):
            value = fn.when(fn.col("schema") < version, fn.col(f"{struct}.{quoted(old)}")).otherwise(value)
        return value

    def _sent(self, column: str) -> list[tuple[int, str]]:
        return sent(self.renames, column)


def values(struct: str, now: DataFrame) -> list[Column]:
    """The columns of `now`, from the struct of wire values in the column of this name."""
    inside = [(name, f"{struct}.{quoted(name)}", kind) for name, kind in now.dtypes]
    return [fn.expr(value_sql(wire, kind)).alias(name) for name, wire, kind in inside]
