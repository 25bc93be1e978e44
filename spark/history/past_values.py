"""The values of changes that are long past, in the types and by the names of the lake's table as it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from contract.breaks import Break
from contract.names import quoted
from contract.past_names import Sent, sent
from contract.renames import Rename
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
        """With a struct of wire values, `_<name>`, for each of the columns of JSON text."""
        told = [*now.columns, *(old for name in now.columns for _, old in self._sent(name) if old)]
        # Texts of all: a name may be that of columns of several types, one after the other.
        shape = ", ".join(f"{quoted(name)} string" for name in {name.lower(): name for name in told}.values())
        found = changes.withColumns({f"_{n}": fn.from_json(fn.col(n), shape, JSON) for n in names})
        for name in names:
            made = fn.col(f"_{name}")
            for column, kind in now.dtypes:
                value = self._in_changes(name, column, WIRE.get(kind))
                made = made if value is None else made.withField(quoted(column), value)
            found = found.withColumn(f"_{name}", made)
        return found

    def _in_changes(self, text: str, column: str, wire: str | None) -> Column | None:
        """A column's value where it is not a text by its name of now, else None. `wire`: if it is none."""
        sent = self._sent(column) if text != "key" else []
        if not sent and not wire and not self._others(column):
            return None
        value = self._told(text, column, wire)
        for version, old in reversed(sent):
            then = self._told(text, old, wire) if old else fn.lit(None)
            value = fn.when(fn.col("schema") < version, then).otherwise(value)
        return value

    def _told(self, text: str, name: str, wire: str | None) -> Column:
        """By a name, however its letters are spelled."""
        others = [fn.from_json(fn.col(text), f"{quoted(one)} string", JSON).getField(one) for one in self._others(name)]
        found = fn.coalesce(fn.col(f"_{text}.{quoted(name)}"), *others)
        return fn.from_json(found, wire, JSON) if wire else found

    def _others(self, name: str) -> list[str]:
        return [one for one in self.spellings if one != name and one.lower() == name.lower()]

    def _sent(self, column: str) -> Sent:
        return sent(self.renames, self.breaks, column)


def values(struct: str, now: DataFrame) -> list[Column]:
    """The columns of `now`, from the struct of wire values in the column of this name."""
    inside = [(name, f"{struct}.{quoted(name)}", kind) for name, kind in now.dtypes]
    return [fn.expr(value_sql(wire, kind)).alias(name) for name, wire, kind in inside]
