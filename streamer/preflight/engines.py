"""The check of the tables' storage engines: of some the rows are not in the table, or change under another's name."""

from __future__ import annotations

from collections.abc import Iterator

from contract.names import quoted
from streamer.ddl.engines import ELSEWHERE, MERGES, members
from streamer.ddl.tokens import scan
from streamer.preflight.findings import Finding, Server, excluding

ENGINES = f"""
SELECT table_schema, table_name, UPPER(engine) FROM information_schema.tables
WHERE table_type = 'BASE TABLE' AND UPPER(engine) IN ({", ".join(map(repr, sorted(ELSEWHERE)))}) ORDER BY 1, 2
"""


def engines(server: Server) -> Iterator[Finding]:
    rows = server.ask(ENGINES) or []
    for level, ours in server.levels(rows):
        listed = ", ".join(f"{db}.{table} ({engine})" for db, table, engine in ours)
        what = f"with these engines a query shows other rows than the changes that the binlog tells: {listed}"
        without = excluding([f"{db}.{table}" for db, table, _ in ours])
        yield Finding(
            level, "engine", what, f"Give them another engine (ALTER TABLE ... ENGINE = InnoDB), or write {without}"
        )
    for db, table, engine in rows:
        if engine in MERGES:
            yield from _merged(server, db, table)


def _merged(server: Server, db: str, table: str) -> Iterator[Finding]:
    """Whoever has it writes rows of its members, also where it is none of the pipeline's itself."""
    name = ".".join(map(quoted, (db, table)))
    made = server.ask(f"SHOW CREATE TABLE {name}") or []
    found = [member for _, statement in made for member in members(scan(statement), db)]
    for level, ours in server.levels(found):
        listed = ", ".join(f"{its}.{member}" for its, member in ours)
        what = f"what is written through {db}.{table} (MERGE) changes rows of its members under its own name: {listed}"
        yield Finding(
            level, "engine", what, f"DROP TABLE {name}; or write {excluding([f'{row[0]}.{row[1]}' for row in ours])}"
        )
