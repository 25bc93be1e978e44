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
BY_NAME = "_by_name"
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
        plain = {name for name in now.columns if not self._sent(name) and not self._others(name)}
        wires = {name: WIRE.get(kind, "string") for name, kind in now.dtypes}
        shape = ", ".join(f"{quoted(name)} {wires[name] if name in plain else 'string'}" for name in now.columns)
        found = changes.withColumns({f"_{n}": fn.from_json(fn.col(n), shape, JSON) for n in names})
        if len(plain) == len(now.columns):
            return found
        maps = {f"_{n}{BY_NAME}": fn.from_json(fn.col(n), "map<string,string>", JSON) for n in names}
        found = found.withColumns(maps)
        for text in names:
            made = fn.col(f"_{text}")
            for name in (name for name in now.columns if name not in plain):
                made = made.withField(quoted(name), self._in_changes(text, name, wires[name]))
            found = found.withColumn(f"_{text}", made)
        return found.drop(*maps)

    def _in_changes(self, text: str, column: str, wire: str) -> Column:
        """By the name that the column had in each change."""
        value = self._told(text, column, wire)
        for version, old in reversed(self._sent(column)) if text != "key" else ():
            then = self._told(text, old, wire) if old else fn.lit(None)
            value = fn.when(fn.col("schema") < version, then).otherwise(value)
        return value

    def _told(self, text: str, name: str, wire: str) -> Column:
        """By a name, however its letters are spelled. Not from the struct: names of several times may be in it as one,
        and values of several types."""
        found = fn.coalesce(*(fn.col(f"_{text}{BY_NAME}").getItem(one) for one in (name, *self._others(name))))
        return found if wire == "string" else fn.from_json(found, wire, JSON)

    def _others(self, name: str) -> list[str]:
        return [one for one in self.spellings if one != name and one.lower() == name.lower()]

    def _sent(self, column: str) -> Sent:
        return sent(self.renames, self.breaks, column)


def values(struct: str, now: DataFrame) -> list[Column]:
    """The columns of `now`, from the struct of wire values in the column of this name."""
    inside = [(name, f"{struct}.{quoted(name)}", kind) for name, kind in now.dtypes]
    return [fn.expr(value_sql(wire, kind)).alias(name) for name, wire, kind in inside]
