"""What the source must be set to before its binlog is read, each with the statement that sets it.

`run_checks` returns what it found; with an `error` among the findings a stream would lose or mislabel changes.
Session settings can still differ (the decoder stops on what they then write), so this proves nothing by itself.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Literal

import pymysql

from contract import types
from contract.gtid import GtidSet
from contract.pipeline import SYSTEM_SCHEMAS, Pipeline
from streamer.connection import connect, refused
from streamer.flavors import FLAVORS, flavor
from streamer.flavors.mysql import replica_uuid
from streamer.flavors.port import Ask, Flavor

DENIED = (1227, 1142, 1044)
SELECT = re.compile(r"^GRANT (.*\b)?(SELECT|ALL PRIVILEGES)\b.* ON ")
VISIBLE = (
    "SELECT 1 FROM information_schema.tables "
    f"WHERE table_schema NOT IN ({', '.join(map(repr, sorted(SYSTEM_SCHEMAS)))}) LIMIT 1"
)
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
Level = Literal["error", "warning"]


@dataclass(frozen=True)
class Finding:
    """`what`: what was seen and why it matters. `statement`: the SQL, or the step, that mends it; ends in a stop
    or a semicolon."""

    level: Level
    name: str
    what: str
    statement: str


@dataclass(frozen=True)
class Server:
    """What the checks look at. `ask` runs a statement and gives its rows, or None where the user may not."""

    pipeline: Pipeline
    start: GtidSet | None
    variables: Mapping[str, str]
    version: tuple[int, ...]
    ask: Ask

    @property
    def flavor(self) -> Flavor:
        return flavor(self.pipeline.source)


def run_checks(pipeline: Pipeline, start: GtidSet | None = None) -> list[Finding]:
    """`start`: the transactions that the stream already has, where that is known. Raises UnreachableError,
    AccessDeniedError, SourceRefusedError where nothing can be asked."""
    try:
        with closing(connect(pipeline.source, read_timeout=60)) as connection:
            server = _server(pipeline, start, connection)
            return [*_flavor(server)] or [finding for check in CHECKS for finding in check(server)]
    except (pymysql.MySQLError, OSError) as error:
        raise refused(pipeline.source, error) from None


def _server(pipeline: Pipeline, start: GtidSet | None, connection: pymysql.Connection[Any]) -> Server:
    def ask(sql: str, *args: Any) -> list[tuple[Any, ...]] | None:
        with connection.cursor() as cursor:
            try:
                cursor.execute(sql, args or None)
            except pymysql.MySQLError as error:
                if error.args and error.args[0] in DENIED:
                    return None
                raise
            return list(cursor.fetchall())

    variables = {str(name).lower(): str(value) for name, value in ask("SHOW GLOBAL VARIABLES") or []}
    numbers = variables["version"].partition("-")[0].split(".")
    return Server(pipeline, start, variables, tuple(int(number) for number in numbers if number.isdigit()), ask)


def _flavor(server: Server) -> Iterator[Finding]:
    version, chosen = server.variables["version"], server.flavor
    if not chosen.owns(version):
        other = next(name for name, flavor in FLAVORS.items() if flavor.owns(version))
        what = f"the server is {version}, the pipeline file says {chosen.title}"
        yield Finding("error", "flavor", what, f"Write flavor: {other} under source in the pipeline file.")


def _binlog(server: Server) -> Iterator[Finding]:
    if server.variables.get("log_bin") != "ON":
        step = "Add log_bin=binlog under [mysqld] in the server's configuration and restart it."
        yield Finding("error", "log_bin", "log_bin is OFF: the server writes no binlog", step)


def _settings(server: Server) -> Iterator[Finding]:
    for name, wanted, absent, reason, statement in server.flavor.settings:
        found = server.variables.get(name, absent)
        if found.upper() != wanted:
            yield Finding("error", name, f"{name} is {found or 'empty'}, not {wanted or 'empty'}: {reason}", statement)


def _grants(server: Server) -> Iterator[Finding]:
    """By trying: grants may come from roles."""
    tried = {**server.flavor.grants(server.ask, server.version), "SELECT": _granted_select(server)}
    if lacking := ", ".join(grant for grant, answer in tried.items() if answer is None):
        user, _, host = str((server.ask("SELECT CURRENT_USER()") or [("?@%",)])[0][0]).rpartition("@")
        statement = f"GRANT {lacking} ON *.* TO '{user}'@'{host}';"
        yield Finding("error", "grants", f"the user '{user}'@'{host}' lacks {lacking}", statement)


def _granted_select(server: Server) -> list[tuple[Any, ...]] | None:
    """A user without SELECT sees no table that is not the server's own."""
    if any(SELECT.search(str(row[0])) for row in server.ask("SHOW GRANTS") or []):
        return []
    return server.ask(VISIBLE) or None


def _server_id(server: Server) -> Iterator[Finding]:
    wanted = server.pipeline.source.server_id
    step = "Give source.server_id in the pipeline file a number that nothing else has."
    if server.variables.get("server_id") == str(wanted):
        yield Finding("error", "server_id", f"server_id {wanted} is the source's own", step)
    for row in server.flavor.replicas(server.ask, server.version) or []:
        if row[0] == wanted:
            ours = row[-1] == replica_uuid(wanted)
            who = "a streamer" if ours else f"a replica ({row[-1]})"
            end = "; the server will disconnect it" if ours else ""
            level: Level = "warning" if ours else "error"
            yield Finding(level, "server_id", f"{who} with server_id {wanted} reads the binlog now{end}", step)


def _purged(server: Server) -> Iterator[Finding]:
    if server.start is None:
        return
    missing = server.flavor.purged(server.ask, server.variables).subtract(server.start)
    if missing:
        what = f"the server has purged transactions that the start needs: {missing}"
        step = "Take a new snapshot and start behind it; raise binlog_expire_logs_seconds above the longest pause."
        yield Finding("error", "purged", what, step)


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


CHECKS = (_binlog, _settings, _grants, _server_id, _purged, _cascades, _float_keys, _keyless, _types, _unclear)
