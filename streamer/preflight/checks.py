"""What the source must be set to before its binlog is read, each with the statement that sets it.

`run_checks` returns what it found; with an `error` among the findings a stream would lose or mislabel changes.
Session settings can still differ (the decoder stops on what they then write), so this proves nothing by itself.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Any

import pymysql

from contract.gtid import GtidSet
from contract.gtid_places import UpTo
from contract.patterns import is_glob, is_regex
from contract.pipeline import SYSTEM_SCHEMAS, Pipeline, Tables
from contract.pipeline_http import loopback
from contract.start_at import FIRST
from streamer.connection import connect
from streamer.connection_errors import refused
from streamer.flavors import FLAVORS
from streamer.flavors.dump import replica_uuid
from streamer.flavors.port import numbers
from streamer.preflight.binlog import BINLOG_CHECKS
from streamer.preflight.findings import Finding, Server
from streamer.preflight.tables import TABLE_CHECKS

__all__ = ["CHECKS", "OF_TABLES", "Finding", "Server", "run_checks"]

Check = Callable[[Server], Iterable[Finding]]
DAY = 86_400  # seconds
DENIED = (1227, 1142, 1044)
# A MERGE table whose members do not fit, or one that is broken or gone meanwhile: nobody reads or writes it.
UNOPENED = (1168, 145, 1146, 1194, 1195)
OURS = (
    "this pipeline's streamer reads the binlog under server_id {}, or did until a moment ago: that a reader has gone a "
    "server may notice some seconds late"
)
OURS_STEP = "Where one runs, stop it first: the server disconnects the older of two. Else there is nothing to be done."
SELECT = re.compile(r"^GRANT (.*\b)?(SELECT|ALL PRIVILEGES)\b.* ON ")
SELECT_ALL = re.compile(r"^GRANT (.*\b)?(SELECT|ALL PRIVILEGES)\b.* ON \*\.\*")
SCHEMAS = "SELECT schema_name FROM information_schema.schemata"
VISIBLE = (
    "SELECT 1 FROM information_schema.tables "
    f"WHERE table_schema NOT IN ({', '.join(map(repr, sorted(SYSTEM_SCHEMAS)))}) LIMIT 1"
)


def run_checks(
    pipeline: Pipeline,
    start: GtidSet | None = None,
    since: float | None = None,
    followed: Tables | None = None,
    checks: Sequence[Check] | None = None,
) -> list[Finding]:
    """`start`: the transactions that the stream already has, where that is known; `since`: Unix seconds of the last one
    of them; `followed`: its tables. All checks, or the given ones. Raises UnreachableError, AccessDeniedError,
    SourceRefusedError where nothing can be asked."""
    try:
        with closing(connect(pipeline.source, read_timeout=60)) as connection:
            server = replace(_server(pipeline, start, since, connection), followed=followed)
            return [*_flavor(server)] or [finding for check in checks or CHECKS for finding in check(server)]
    except (pymysql.MySQLError, OSError) as error:
        raise refused(pipeline.source, error) from None


def _server(
    pipeline: Pipeline, start: GtidSet | None, since: float | None, connection: pymysql.Connection[Any]
) -> Server:
    def ask(sql: str, *args: Any) -> list[tuple[Any, ...]] | None:
        with connection.cursor() as cursor:
            try:
                cursor.execute(sql, args or None)
            except pymysql.MySQLError as error:
                if error.args and error.args[0] in DENIED + UNOPENED:
                    return None
                raise
            return list(cursor.fetchall())

    variables = {str(name).lower(): str(value) for name, value in ask("SHOW GLOBAL VARIABLES") or []}
    return Server(pipeline, start, since, variables, numbers(variables["version"]), ask)


def _flavor(server: Server) -> Iterator[Finding]:
    version, chosen = server.variables["version"], server.flavor
    if not chosen.owns(version):
        other = next(name for name, flavor in FLAVORS.items() if flavor.owns(version))
        what = f"the server is {version}, the pipeline file says {chosen.title}"
        yield Finding("error", "flavor", what, f"Write flavor: {other} under source in the pipeline file.")


def _encrypted(server: Server) -> Iterator[Finding]:
    """Where the file leaves it to the server, which offers none, the other side of a network."""
    source = server.pipeline.source
    if source.tls.mode != "preferred" or loopback(source.host):
        return
    if not any(row[-1] for row in server.ask("SHOW SESSION STATUS LIKE 'Ssl_version'") or [("?",)]):
        what = f"{source.where} offers no TLS: rows and passwords cross the network in the clear"
        step = "Set ssl_ca, ssl_cert and ssl_key on it; or write source.tls: {mode: disabled} where that is meant."
        yield Finding("warning", "tls", what, step)


def _settings(server: Server) -> Iterator[Finding]:
    for name, wanted, absent, reason, statement, since, level in server.flavor.settings:
        found = server.variables.get(name, absent)
        if since and name not in server.variables:
            what = f"{server.flavor.title} {server.variables['version']} has no {name}: {reason}"
            yield Finding("error", name, what, f"Upgrade the server: {server.flavor.title} has it since {since}.")
        elif found.upper() != wanted:
            yield Finding(level, name, f"{name} is {found or 'empty'}, not {wanted or 'empty'}: {reason}", statement)


def _grants(server: Server) -> Iterator[Finding]:
    """By trying: grants may come from roles."""
    tried = {**server.flavor.grants(server.ask, server.version), "SELECT": _granted_select(server)}
    if lacking := ", ".join(grant for grant, answer in tried.items() if answer is None):
        user, host = _user(server)
        statement = f"GRANT {lacking} ON *.* TO '{user}'@'{host}';"
        yield Finding("error", "grants", f"the user '{user}'@'{host}' lacks {lacking}", statement)


def _user(server: Server) -> tuple[str, str]:
    user, _, host = str((server.ask("SELECT CURRENT_USER()") or [("?@%",)])[0][0]).rpartition("@")
    return user, host


def _granted_select(server: Server) -> list[tuple[Any, ...]] | None:
    """A user without SELECT sees no table that is not the server's own."""
    if any(SELECT.search(str(row[0])) for row in server.ask("SHOW GRANTS") or []):
        return []
    return server.ask(VISIBLE) or None


def _unseen(server: Server) -> Iterator[Finding]:
    """Databases of which a user whose SELECT is not on all of them would see no table, and say nothing."""
    granted = [str(row[0]) for row in server.ask("SHOW GRANTS") or []]
    if _granted_select(server) is None or any(SELECT_ALL.search(grant) for grant in granted):
        return
    named = {pattern.split(".")[0] for pattern in server.pipeline.tables.include if not is_regex(pattern)}
    seen = {str(row[0]) for row in server.ask(SCHEMAS) or []}
    for db in sorted(name for name in named - seen if not is_glob(name)):
        user, host = _user(server)
        what = f"the database {db} is not there, or the user '{user}'@'{host}' may not see it"
        yield Finding("warning", "grants", what, f"GRANT SELECT ON `{db}`.* TO '{user}'@'{host}';")


def _server_id(server: Server) -> Iterator[Finding]:
    wanted = server.pipeline.source.server_id
    step = "Give source.server_id in the pipeline file a number that nothing else has."
    if server.variables.get("server_id") == str(wanted):
        yield Finding("error", "server_id", f"server_id {wanted} is the source's own", step)
    replicas = server.flavor.replicas(server.ask, server.version)
    if replicas is None:
        yield from _unlisted(server, wanted)
    for row in replicas or []:
        if row[0] == wanted:
            if row[-1] == replica_uuid(wanted, server.pipeline.name):
                yield Finding("warning", "server_id", OURS.format(wanted), OURS_STEP)
                continue
            who = f"a replica, or another pipeline's streamer, ({row[-1] or 'it gave no name'})"
            yield Finding("error", "server_id", f"{who} with server_id {wanted} reads the binlog now", step)


def _unlisted(server: Server, wanted: int) -> Iterator[Finding]:
    """Where a privilege that a stream cannot do without lists the replicas, its lack is told elsewhere."""
    if (privilege := server.flavor.lists_replicas) not in server.flavor.grants(server.ask, server.version):
        user, host = _user(server)
        what = f"whether something else reads the binlog with server_id {wanted} now could not be asked"
        yield Finding("warning", "server_id", what, f"GRANT {privilege} ON *.* TO '{user}'@'{host}';")


def _purged(server: Server) -> Iterator[Finding]:
    if server.start is None:
        return
    if isinstance(server.start, UpTo):
        purged: GtidSet = UpTo.place(_files(server)[0][0], FIRST)
    else:
        purged = server.flavor.purged(server.ask, server.variables)
    missing = purged.subtract(server.start)
    if missing:
        what = f"the server has purged transactions that the start needs: {missing}"
        step = "Take a new snapshot and start behind it; raise binlog_expire_logs_seconds above the longest pause."
        yield Finding("error", "purged", what, step)


def _retention(server: Server) -> Iterator[Finding]:
    """Binlogs that go before the stream has read them, or soon after."""
    keeps, lag = server.flavor.keeps_seconds(server.variables), _lag(server)
    statement = server.flavor.keep.format(seconds=max(7 * DAY, 4 * round(lag)))
    if keeps and 2 * lag >= keeps:
        what = f"the stream is {_spelled(lag)} behind, and the server keeps binlogs for {_spelled(keeps)}"
        yield Finding("warning", "lag", what, statement)
    elif keeps and keeps < DAY:
        what = f"the server keeps binlogs for {_spelled(keeps)}: a longer pause of the streamer would lose changes"
        yield Finding("warning", "retention", what, statement)


def _lag(server: Server) -> float:
    """Seconds, by the server's clock, since the last transaction that the stream has; 0 where it has all."""
    if server.start is None or server.since is None:
        return 0.0
    by_place = isinstance(server.start, UpTo)
    executed = UpTo.place(*_files(server)[-1][:2]) if by_place else server.flavor.executed(server.ask)
    if server.start.issuperset(executed):
        return 0.0
    [(now,)] = server.ask("SELECT UNIX_TIMESTAMP()") or [(0,)]
    return max(0.0, float(now) - server.since)


def _files(server: Server) -> list[tuple[Any, ...]]:
    """The binlog files, the oldest first: names, and sizes in bytes."""
    return server.ask("SHOW BINARY LOGS") or [("binlog.000001", FIRST)]


def _spelled(seconds: float) -> str:
    for size, unit in ((DAY, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} seconds"


OF_TABLES: tuple[Check, ...] = (_unseen, *TABLE_CHECKS)
CHECKS: tuple[Check, ...] = (
    *BINLOG_CHECKS,
    _encrypted,
    _retention,
    _settings,
    _grants,
    _server_id,
    _purged,
    *OF_TABLES,
)
