"""The checks of the pipeline's tables: those of which changes could not be told, or which the lake cannot take."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from contract import steps, types
from contract.patterns import any_matches
from contract.pipeline_keys import rule_of
from contract.types import INEXACT
from streamer.preflight.columns import columns, names
from streamer.preflight.computed import computed
from streamer.preflight.engines import engines
from streamer.preflight.findings import Finding, Level, Server, excluding
from streamer.preflight.unmatched import unmatched

INEXACT_KEYS = f"""
SELECT table_schema, table_name, column_name, data_type FROM information_schema.columns
WHERE column_key = 'PRI' AND data_type IN ({", ".join(map(repr, INEXACT))}) ORDER BY 1, 2, ordinal_position
"""
CLASS = re.compile(r"\[.*?\]|\\.")  # of a pattern, as [A-Za-z], \S
KEYLESS = """
SELECT t.table_schema, t.table_name FROM information_schema.tables t LEFT JOIN information_schema.statistics s
ON s.table_schema = t.table_schema AND s.table_name = t.table_name AND s.index_name = 'PRIMARY'
WHERE t.table_type = 'BASE TABLE' AND s.index_name IS NULL ORDER BY 1, 2
"""
# MariaDB's: the rows of a sequence, and the history of a table's rows.
ODD_TABLES = """
SELECT table_schema, table_name, LOWER(table_type) FROM information_schema.tables
WHERE table_type IN ('SEQUENCE', 'SYSTEM VERSIONED') ORDER BY 1, 2
"""
TYPES = """
SELECT c.table_schema, c.table_name, c.column_name, LOWER(c.data_type) FROM information_schema.columns c
JOIN information_schema.tables t ON t.table_schema = c.table_schema AND t.table_name = c.table_name
WHERE t.table_type = 'BASE TABLE' ORDER BY 1, 2, c.ordinal_position
"""


def _cascades(server: Server) -> Iterator[Finding]:
    if server.flavor.logs_cascades(server.ask, server.version, server.variables):
        return
    tables, again = server.pipeline.tables, steps.snapshot(server.pipeline)
    found = server.flavor.cascades(server.ask, tables.match)
    for level, rows in server.levels(row for row in found if not any_matches(tables.cascades, row[0], row[1])):
        for db, table, name, parent, rules in rows:
            step = (
                f"ALTER TABLE `{db}`.`{table}` DROP FOREIGN KEY `{name}`; or write tables.cascades: "
                f"[{json.dumps(f'{db}.{table}')}] in the pipeline file, and by a schedule {again}, for it."
            )
            yield Finding(level, "foreign_key", _changing(server, db, table, name, parent, rules), step)
    for db, table, name, parent, rules in found:
        if any_matches(tables.cascades, db, table):
            what = f"allowed by tables.cascades: {_changing(server, db, table, name, parent, rules)}"
            yield Finding("ok", "foreign_key", what, f"For {db}.{table}, by a schedule, {again}.")


def _changing(server: Server, db: str, table: str, name: str, parent: str, rules: str) -> str:
    key = f"the foreign key {name} of {db}.{table} (to {parent}, {rules})"
    return f"{key} changes rows that {server.flavor.hides_cascades} does not write into the binlog"


def _inexact_keys(server: Server) -> Iterator[Finding]:
    for level, rows in server.levels(server.ask(INEXACT_KEYS)):
        for db, table, column, kind in rows:
            what = f"the primary key of {db}.{table} has the column {column} of type {kind}: no text of it is exact"
            step = f"Exclude {db}.{table} in the pipeline file, or give it a primary key of exact types."
            yield _stopping(level, "key", what, step)


def _keyless(server: Server) -> Iterator[Finding]:
    given = server.pipeline.keys
    for level, rows in server.levels(row for row in server.ask(KEYLESS) or () if rule_of(given, *row) is None):
        tables = [f"{db}.{table}" for db, table in rows]
        what = f"no primary key, by which the lake knows a row: {', '.join(tables)}"
        yield Finding(
            level,
            "key",
            what,
            "Give each one a primary key, or, under keys in the pipeline file, columns, or changes_only: true (a "
            f"history without a current table), or write {excluding(tables)}",
        )


def _odd_tables(server: Server) -> Iterator[Finding]:
    for level, rows in server.levels(server.ask(ODD_TABLES)):
        listed = ", ".join(f"{db}.{table} ({kind})" for db, table, kind in rows)
        what = f"of these kinds the binlog holds rows that no query shows, and the lake has no place for them: {listed}"
        yield _stopping(level, "table", what, f"Write {excluding([f'{db}.{table}' for db, table, _ in rows])}")


def _types(server: Server) -> Iterator[Finding]:
    flavor = server.pipeline.source.flavor
    columns = [row for row in server.ask(TYPES) or [] if not types.known(row[3], flavor)]
    for level, rows in server.levels(columns):
        listed = ", ".join(f"{db}.{table}.{column} ({kind})" for db, table, column, kind in rows)
        what = f"columns of a type that is not supported: {listed}"
        tables = list(dict.fromkeys(f"{db}.{table}" for db, table, *_ in rows))
        yield _stopping(level, "type", what, f"Change the columns' types, or write {excluding(tables)}")


def _stopping(level: Level, name: str, what: str, step: str) -> Finding:
    """Of tables whose rows the decoder refuses."""
    told = f"{what}; the streamer stops at the first row" if level == "warning" else what
    return Finding(level, name, told, step, stops=True)


def _capitals(server: Server) -> Iterator[Finding]:
    """Globs that can match no name of a server that keeps names in lower case."""
    if server.variables.get("lower_case_table_names", "0") == "0":
        return
    tables = server.pipeline.tables
    if found := [glob for glob in (*tables.include, *tables.exclude) if re.search("[A-Z]", CLASS.sub("", glob))]:
        what = (
            f"lower_case_table_names is set: the binlog has all names in lower case, and {', '.join(found)} match none"
        )
        yield Finding("error", "table", what, "Write them in lower case under tables in the pipeline file.")


def _unclear(server: Server) -> Iterator[Finding]:
    """Whole tables: an ALTER TABLE of one is what brings doubt."""
    columns: dict[str, list[str]] = {}
    for db, table, column, kind in server.flavor.unclear(server.ask):
        if server.pipeline.tables.match(db, table):
            columns.setdefault(f"{db}.{table}", []).append(f"{column} ({kind})")
    for name, found in columns.items():
        what = (
            f"the binlog does not tell the type of {', '.join(found)} in {name}: it is asked of the server, which "
            "knows it for rows written since the table was last altered"
        )
        step = f"Alter {name} only while the streamer reads without lag; else it stops with unclear_type."
        yield Finding("warning", "type", what, step)


TABLE_CHECKS = (
    _capitals,
    _cascades,
    columns,
    computed,
    engines,
    _inexact_keys,
    _keyless,
    names,
    _odd_tables,
    _types,
    _unclear,
    unmatched,
)
