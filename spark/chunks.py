"""Chunks of a table: ranges of its primary key, found by walking the key in MySQL, both ends open.

MySQL's own collations compare, and its own literals stand in the conditions. A composite key is compared
column by column (`a > 1 or (a = 1 and b > 2)`): the server's optimizer does not use the index for more than
the first column of a row constructor.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

from contract.schema import Column, TableSchema

Boundary = tuple[str, ...]  # one SQL literal a key column

NUMBERS = ("tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "year")
TIMES = ("date", "time", "datetime", "timestamp")
TEXTS = ("char", "varchar")
BYTES = ("binary", "varbinary")


def walkable(schema: TableSchema) -> bool:
    """Whether the key's columns have literals that compare as the index sorts; others (enum, set, bit, floats)
    are read as one chunk."""
    return all(schema.column(name).type in (*NUMBERS, *TIMES, *TEXTS, *BYTES) for name in schema.key)


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def table_sql(schema: TableSchema) -> str:
    return f"{quoted(schema.db)}.{quoted(schema.table)}"


def boundary_sql(schema: TableSchema, last: Boundary | None, rows: int) -> str:
    """Gives the key that ends the chunk of `rows` rows behind `last`; no row where less is left. Each value
    comes as the text from which `literal` makes SQL."""
    names = [quoted(name) for name in schema.key]
    told = ", ".join(_text(schema.column(name)) for name in schema.key)
    where = f" WHERE {above(names, last)}" if last else ""
    return (
        f"SELECT {told} FROM {table_sql(schema)} FORCE INDEX (PRIMARY){where} "
        f"ORDER BY {', '.join(names)} LIMIT 1 OFFSET {rows - 1}"
    )


def _text(column: Column) -> str:
    name = quoted(column.name)
    if column.type in TEXTS:
        return f"hex(cast({name} as char character set utf8mb4))"
    return f"hex({name})" if column.type in BYTES else f"cast({name} as char)"


def literal(column: Column, text: str) -> str:
    """The SQL literal of a boundary's value."""
    if column.type in NUMBERS:
        return text
    if column.type in TEXTS:
        return f"_utf8mb4 x'{text}'"
    return f"x'{text}'" if column.type in BYTES else f"'{text}'"


def above(names: Sequence[str], key: Boundary) -> str:
    """The condition that the key's columns are greater than `key`, in the index's order."""
    parts = []
    for at in range(len(names)):
        equal = [f"{name} = {value}" for name, value in zip(names[:at], key[:at], strict=True)]
        parts.append("(" + " and ".join([*equal, f"{names[at]} > {key[at]}"]) + ")")
    # Said again of the first column alone: this is what the optimizer makes its range from.
    first = f"{names[0]} >= {key[0]} and " if len(names) > 1 else ""
    return f"{first}({' or '.join(parts)})"


def up_to(names: Sequence[str], key: Boundary) -> str:
    """The condition that the key's columns are not greater than `key`."""
    parts = []
    for at in range(len(names)):
        equal = [f"{name} = {value}" for name, value in zip(names[:at], key[:at], strict=True)]
        sign = "<=" if at == len(names) - 1 else "<"
        parts.append("(" + " and ".join([*equal, f"{names[at]} {sign} {key[at]}"]) + ")")
    first = f"{names[0]} <= {key[0]} and " if len(names) > 1 else ""
    return f"{first}({' or '.join(parts)})"


def walk(schema: TableSchema, rows: int, ask: Callable[[str], Sequence[Any] | None]) -> list[Boundary]:
    """The boundaries between the chunks. `ask` runs SQL and gives the first row, or None."""
    boundaries: list[Boundary] = []
    if not walkable(schema):
        return boundaries
    while found := ask(boundary_sql(schema, boundaries[-1] if boundaries else None, rows)):
        columns = [schema.column(name) for name in schema.key]
        boundaries.append(tuple(literal(c, str(v)) for c, v in zip(columns, found, strict=True)))
    return boundaries


def conditions(names: Sequence[str], boundaries: Sequence[Boundary]) -> list[str]:
    """One condition a chunk over the key's columns `names`: together they hold every row, each once."""
    if not boundaries:
        return ["1 = 1"]
    first, last = up_to(names, boundaries[0]), above(names, boundaries[-1])
    between = [f"{above(names, low)} and {up_to(names, high)}" for low, high in pairwise(boundaries)]
    return [first, *between, last]
