"""The checks of what the server writes into its binlog at all, and what it leaves out."""

from __future__ import annotations

from collections.abc import Iterator

from contract.patterns import is_glob, is_regex
from streamer.preflight.findings import Finding, Server

TABLES = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE'"


def _binlog(server: Server) -> Iterator[Finding]:
    if server.variables.get("log_bin") != "ON":
        step = "Add log_bin=binlog under [mysqld] in the server's configuration and restart it."
        yield Finding("error", "log_bin", "log_bin is OFF: the server writes no binlog", step)


def _replicated(server: Server) -> Iterator[Finding]:
    """A replica that keeps what it applies out of its binlog."""
    known = [name for name in server.flavor.logs_replicated if name in server.variables]
    off = [name for name in known if server.variables[name] == "OFF"]
    if off and server.flavor.replicated(server.ask, server.variables, server.version):
        step = f"Add {off[0]}=ON under [mysqld] in the server's configuration and restart it."
        yield Finding("error", off[0], f"{off[0]} is OFF: what the server replicates is not in its binlog", step)


def _filtered(server: Server) -> Iterator[Finding]:
    """Databases whose rows the server keeps out of its binlog; of rows the table's own database decides."""
    only, ignored = server.flavor.filtered(server.ask, server.version)
    hidden = sorted(db for db in _databases(server) if (db not in only if only else db in ignored))
    if hidden:
        name = "binlog_do_db" if only else "binlog_ignore_db"
        what = f"{name} of the server keeps the changes of these databases out of its binlog: {', '.join(hidden)}"
        step = f"Mend {name} in the server's configuration and restart it, or write tables that leave them out."
        yield Finding("error", name, what, step)


def _databases(server: Server) -> set[str]:
    """Of the pipeline's tables: those that are there, and those that its patterns name."""
    tables = server.pipeline.tables
    firsts = [pattern.split(".")[0] for pattern in tables.include if not is_regex(pattern)]
    there = {str(db) for db, table in server.ask(TABLES) or [] if tables.match(db, table)}
    return there | {db for db in firsts if not is_glob(db)}


BINLOG_CHECKS = (_binlog, _replicated, _filtered)
