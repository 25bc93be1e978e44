"""Chunks of a table: ranges of its primary key, found by walking the key in MySQL, both ends open.

MySQL's own collations compare, and its own literals stand in the conditions, a text in its column's own character set,
byte by byte. A composite key is compared column by column (`a > 1 or (a = 1 and b > 2)`): the server's optimizer does
not use the index for more than the first column of a row constructor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import takewhile
from typing import Any

from contract.names import quoted
from contract.schema import Column, TableSchema

Boundary = tuple[str, ...]  # one SQL literal a walked column

NUMBERS = ("tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "bit")
TIMES = ("date", "time", "datetime", "timestamp")
TEXTS = ("char", "varchar")
BYTES = ("binary", "varbinary")
OWN = ("uuid", "inet4", "inet6")  # types whose order is the server's own
WALKED = (*NUMBERS, *TIMES, *TEXTS, *BYTES, *OWN)
# Of each of the key's columns: A or D, the index's direction, and p where that has but the value's beginning, or no
# order at all.
INDEX = """
SELECT group_concat(concat(coalesce(collation, 'p'), if(sub_part is null, '', 'p')) ORDER BY seq_in_index SEPARATOR ' ')
FROM information_schema.statistics WHERE table_schema = {} AND table_name = {} AND index_name = 'PRIMARY'
"""


def walked(schema: TableSchema) -> tuple[str, ...]:
    """The columns that chunks are ranges of: the key's first ones, as far as their literals compare as the index
    sorts. Rows alike in them are in one chunk. Of an ENUM, a SET, a YEAR (whose 0 compares as 2000) or a TEXT none
    do; a table whose key begins so, or without a key, is one chunk."""
    return tuple(takewhile(lambda name: schema.column(name).type in WALKED, schema.key))


def table_sql(schema: TableSchema) -> str:
    return f"{quoted(schema.db)}.{quoted(schema.table)}"


def index_sql(schema: TableSchema) -> str:
    return INDEX.format(*(f"_utf8mb4 x'{name.encode().hex()}'" for name in (schema.db, schema.table)))


def sorted_alike(index: str) -> int:
    """How many of the key's first columns the index has in one direction, by the answer to `index_sql`. By more of them
    a server would sort all that is left of the table, for every chunk anew."""
    first, *_ = columns = index.split()
    return sum(1 for _ in takewhile(lambda one: one == first and "p" not in one, columns))


def boundary_sql(
    schema: TableSchema, columns: Sequence[Column], last: Boundary | None, rows: int, within: str = ""
) -> str:
    """Gives the key, of these columns, that ends the chunk of `rows` rows behind `last`; no row where less is left.
    Each value comes as the text from which `literal` makes SQL. `within`: as of `walk`."""
    names = [quoted(column.name) for column in columns]
    conditions = [*([f"({within})"] if within else []), *([above(names, last)] if last else [])]
    where = f" WHERE {' and '.join(conditions)}" if conditions else ""
    return (
        f"SELECT {', '.join(map(_text, columns))} FROM {table_sql(schema)} FORCE INDEX (PRIMARY){where} "
        f"ORDER BY {', '.join(names)} LIMIT 1 OFFSET {rows - 1}"
    )


def _text(column: Column) -> str:
    name = quoted(column.name)
    if column.type in (*TEXTS, *BYTES):
        return f"hex({name})"
    return f"cast({name} + 0 as char)" if column.type == "bit" else f"cast({name} as char)"


def literal(column: Column, text: str) -> str:
    """The SQL literal of a boundary's value."""
    if column.type in NUMBERS:
        return text
    if column.type in TEXTS:
        return f"_{column.charset or 'utf8mb4'} x'{text}'"
    if column.type in OWN:
        return f"cast('{text}' as {column.type})"
    return f"x'{text}'" if column.type in BYTES else f"'{text}'"


def above(names: Sequence[str], key: Boundary) -> str:
    """The condition that the walked columns, the first of `names`, are greater than `key`, in the index's order."""
    names, parts = names[: len(key)], []
    for at in range(len(names)):
        equal = [f"{name} = {value}" for name, value in zip(names[:at], key[:at], strict=True)]
        parts.append("(" + " and ".join([*equal, f"{names[at]} > {key[at]}"]) + ")")
    # Said again of the first column alone: this is what the optimizer makes its range from.
    first = f"{names[0]} >= {key[0]} and " if len(names) > 1 else ""
    return f"{first}({' or '.join(parts)})"


def up_to(names: Sequence[str], key: Boundary) -> str:
    """The condition that they are not greater than `key`."""
    names, parts = names[: len(key)], []
    for at in range(len(names)):
        equal = [f"{name} = {value}" for name, value in zip(names[:at], key[:at], strict=True)]
        sign = "<=" if at == len(names) - 1 else "<"
        parts.append("(" + " and ".join([*equal, f"{names[at]} {sign} {key[at]}"]) + ")")
    first = f"{names[0]} <= {key[0]} and " if len(names) > 1 else ""
    return f"{first}({' or '.join(parts)})"


def walk(
    schema: TableSchema,
    rows: int,
    ask: Callable[[str], Sequence[Any] | None],
    behind: Boundary | None = None,
    within: str = "",
) -> Iterator[Boundary]:
    """The boundaries between the chunks of the rows behind the one given, in the key's order; of those alone that are
    `within` a condition over the columns' names. `ask` runs SQL and gives the first row, or None."""
    columns, known, last = [schema.column(name) for name in walked(schema)], {behind}, behind
    if columns and (index := ask(index_sql(schema))) and index[0]:
        columns = columns[: sorted_alike(_plain(index[0]))]
    while columns and (found := ask(boundary_sql(schema, columns, last, rows, within))):
        last = tuple(literal(column, _plain(value)) for column, value in zip(columns, found, strict=True))
        if last in known:  # a value that does not compare as its own literal: what is behind it is one chunk
            return
        known.add(last)
        yield last


def _plain(value: object) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def conditions(
    names: Sequence[str], boundaries: Sequence[Boundary], behind: Boundary | None = None, to_the_end: bool = True
) -> list[str]:
    """One condition a chunk over the walked columns `names`: together they hold every row, each once. Without the rows
    up to `behind`, and without those behind the last boundary unless it goes `to_the_end`."""
    lows = [behind, *boundaries]
    highs: list[Boundary | None] = [*boundaries, None] if to_the_end else [*boundaries]
    found = []
    for low, high in zip(lows, highs, strict=False):
        ends = [above(names, low)] if low else []
        found.append(" and ".join([*ends, up_to(names, high)] if high else ends) or "1 = 1")
    return found
