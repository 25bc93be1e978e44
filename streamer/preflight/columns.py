"""The checks of columns: rules of `columns` and `keys` that cannot hold for a table, or that choose nothing; and names
that the lake cannot have.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from contract.lake_columns import nameable
from contract.pipeline_columns import ColumnRuleError
from contract.pipeline_file import place_of
from contract.schema import Column, TableSchema
from contract.types import SPELLINGS
from streamer.preflight.findings import Finding, Server, excluding

COLUMNS = """
SELECT c.table_schema, c.table_name, c.column_name, LOWER(c.data_type), c.column_key = 'PRI',
       c.is_nullable = 'YES'
FROM information_schema.columns c
JOIN information_schema.tables t ON t.table_schema = c.table_schema AND t.table_name = c.table_name
WHERE t.table_type = 'BASE TABLE' ORDER BY 1, 2, c.ordinal_position
"""


def columns(server: Server) -> Iterator[Finding]:
    rules, path = server.pipeline.columns, server.pipeline.path
    if not rules.hides and not server.pipeline.keys:
        return
    found = list(_tables(server))
    for table in found:
        try:
            server.pipeline.show(table)
        except ColumnRuleError as error:
            yield Finding("error", "columns", f"{place_of(path, *error.place)}: {error.cause}", error.fix + ".")
    for place, pattern in rules.unused(found):
        what = f"{place_of(path, *place)}: {pattern} chooses no column that is there now, so it hides nothing"
        yield Finding("warning", "columns", what, "Mend the pattern, or make the table.")


def names(server: Server) -> Iterator[Finding]:
    """Columns that stop their tables in the lake, and nothing else."""
    if not server.pipeline.feeds_lake:
        return
    found = {f"{table.db}.{table.table}": _unnameable(server, table) for table in _tables(server)}
    if found := {name: columns for name, columns in found.items() if columns}:
        listed = ", ".join(f"{column!r} in {name}" for name, columns in found.items() for column in columns)
        step = f"Rename them, leave them out (columns.exclude), or write {excluding(list(found))}"
        yield Finding("warning", "columns", f"the lake cannot have columns of these names: {listed}", step)


def _unnameable(server: Server, table: TableSchema) -> list[str]:
    try:
        shown = server.pipeline.show(table).schema
    except ColumnRuleError:  # told by itself
        return []
    return [column.name for column in shown.columns if not nameable(column.name)]


def _tables(server: Server) -> Iterator[TableSchema]:
    """The pipeline's, as far as the rules look at them."""
    rows = [row for row in server.ask(COLUMNS) or [] if server.pipeline.tables.match(row[0], row[1])]
    for (db, table), members in groupby(rows, key=lambda row: (row[0], row[1])):
        listed = [
            (Column(name=name, type=SPELLINGS.get(kind, kind), nullable=bool(nullable)), key)
            for _, _, name, kind, key, nullable in members
        ]
        key = tuple(column.name for column, is_key in listed if is_key)
        yield TableSchema(db=db, table=table, columns=tuple(column for column, _ in listed), key=key)
