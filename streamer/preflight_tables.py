"""The checks of the pipeline's tables: those of which changes could not be told, or which the lake cannot take."""

from __future__ import annotations

import json
from collections.abc import Iterator

from contract import types
from streamer.findings import Finding, Server

CASCADES = """
SELECT constraint_schema, table_name, constraint_name, referenced_table_name, update_rule, delete_rule
FROM information_schema.referential_constraints
WHERE update_rule IN ('CASCADE', 'SET NULL') OR delete_rule IN ('CASCADE', 'SET NULL')
ORDER BY 1, 2, 3
"""
FLOAT_KEYS = """
SELECT table_schema, table_name, column_name, data_type FROM information_schema.columns
WHERE column_key = 'PRI' AND data_type IN ('float', 'double') ORDER BY 1, 2, ordinal_position
"""
KEYLESS = """
SELECT t.table_schema, t.table_name FROM information_schema.tables t LEFT JOIN information_schema.statistics s
ON s.table_schema = t.table_schema AND s.table_name = t.table_name AND s.index_name = 'PRIMARY'
WHERE t.table_type = 'BASE TABLE' AND s.index_name IS NULL ORDER BY 1, 2
"""
TYPES = """
SELECT c.table_schema, c.table_name, c.column_name, LOWER(c.data_type) FROM information_schema.columns c
JOIN information_schema.tables t ON t.table_schema = c.table_schema AND t.table_name = c.table_name
WHERE t.table_type = 'BASE TABLE' ORDER BY 1, 2, c.ordinal_position
"""


def _cascades(server: Server) -> Iterator[Finding]:
    if server.flavor.logs_cascades(server.version):
        return
    for db, table, name, parent, update, delete in server.ask(CASCADES) or []:
        if server.pipeline.tables.match(db, table):
            what = (
                f"the foreign key {name} of {db}.{table} (to {parent}, ON UPDATE {update}, ON DELETE {delete}) changes "
                f"rows that {server.flavor.hides_cascades} does not write into the binlog"
            )
            step = f"ALTER TABLE `{db}`.`{table}` DROP FOREIGN KEY `{name}`; or take snapshots of the table regularly."
            yield Finding("warning", "foreign_key", what, step)


def _float_keys(server: Server) -> Iterator[Finding]:
    for db, table, column, kind in server.ask(FLOAT_KEYS) or []:
        if server.pipeline.tables.match(db, table):
            what = f"the primary key of {db}.{table} has the column {column} of type {kind}: no text of it is exact"
            step = f"Exclude {db}.{table} in the pipeline file, or give it a primary key of exact types."
            yield Finding("error", "key", what, step)


def _keyless(server: Server) -> Iterator[Finding]:
    rows = server.ask(KEYLESS) or []
    if tables := [f"{db}.{table}" for db, table in rows if server.pipeline.tables.match(db, table)]:
        what = f"no primary key, by which the lake knows a row: {', '.join(tables)}"
        yield Finding("error", "key", what, f"Give each one a primary key, or write {_excluding(tables)}")


def _types(server: Server) -> Iterator[Finding]:
    """Types of which `_unclear` speaks are left to it."""
    told = {(db, table, column) for db, table, column, _ in server.flavor.unclear(server.ask)}
    columns = [
        (f"{db}.{table}", f"{db}.{table}.{column} ({kind})")
        for db, table, column, kind in server.ask(TYPES) or []
        if kind not in types.TABLE and server.pipeline.tables.match(db, table) and (db, table, column) not in told
    ]
    if columns:
        what = f"columns of a type that is not supported: {', '.join(column for _, column in columns)}"
        tables = list(dict.fromkeys(table for table, _ in columns))
        yield Finding("error", "type", what, f"Change the columns' types, or write {_excluding(tables)}")


def _excluding(tables: list[str]) -> str:
    return f"tables.exclude: [{', '.join(map(json.dumps, tables))}] in the pipeline file."


def _unclear(server: Server) -> Iterator[Finding]:
    for db, table, column, kind in server.flavor.unclear(server.ask):
        if server.pipeline.tables.match(db, table):
            what = (
                f"the column {column} of {db}.{table} is {kind}: in the binlog UUID, INET6, INET4 and BINARY of their "
                "width cannot be told apart"
            )
            step = f"Exclude {db}.{table} in the pipeline file, or make the column a VARBINARY or a CHAR."
            yield Finding("error", "type", what, step)


TABLE_CHECKS = (_cascades, _float_keys, _keyless, _types, _unclear)
