"""The check of columns of which a query tells each session something else, or less than the binlog has.

A VIRTUAL column's value is computed for whoever reads it: the binlog has what the writer's session saw, a snapshot and
a check what their own do, in UTC and with an empty sql_mode (MySQL's manual, "CREATE TABLE and Generated Columns").
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from streamer.preflight.findings import Finding, Server, excluding

VIRTUAL = """
SELECT table_schema, table_name, column_name, COALESCE(generation_expression, '') FROM information_schema.columns
WHERE extra LIKE '%VIRTUAL%' ORDER BY 1, 2, ordinal_position
"""
MOMENTS = """
SELECT table_schema, table_name, column_name FROM information_schema.columns WHERE data_type = 'timestamp'
"""
SHORT_YEARS = """
SELECT table_schema, table_name, column_name FROM information_schema.columns
WHERE column_type = 'year(2)' ORDER BY 1, 2, ordinal_position
"""
# Calls that depend on the session or the moment; MariaDB takes all of them in a VIRTUAL column, MySQL some.
SESSION = re.compile(
    r"\b(now|curdate|curtime|current_\w+|localtime\w*|sysdate|utc_\w+|unix_timestamp|from_unixtime|user|session_user|"
    r"database|schema|dayname|monthname|date_format|week|yearweek|connection_id|rand|uuid)\s*\(",
    re.IGNORECASE,
)
NAME = re.compile(r"`((?:[^`]|``)*)`")
Row = tuple[Any, ...]


def computed(server: Server) -> Iterator[Finding]:
    """Nothing of a pipeline that feeds no lake, since nobody asks the server for rows then."""
    if not server.pipeline.feeds_lake:
        return
    yield from _told(
        server,
        _unsure(server),
        "VIRTUAL columns by a session's time zone, user or clock, which a snapshot and a check compute otherwise than "
        "the writer did, whose values the stream has",
        "Make them STORED",
    )
    yield from _told(
        server,
        server.ask(SHORT_YEARS) or [],
        "YEAR(2) columns, whose century a query does not tell, so that no snapshot takes their tables",
        "ALTER TABLE ... MODIFY them as YEAR",
    )


def _unsure(server: Server) -> list[Row]:
    """Also those by a column that is one."""
    known = defaultdict[tuple[str, str], set[str]](set)
    for db, table, column in server.ask(MOMENTS) or []:
        known[db, table].add(str(column).lower())
    left, found = list(server.ask(VIRTUAL) or []), list[Row]()
    while more := [row for row in left if depends(str(row[3]), known[row[0], row[1]])]:
        found += more
        left = [row for row in left if row not in more]
        for db, table, column, _ in more:
            known[db, table].add(str(column).lower())
    return sorted(found, key=lambda row: row[:3])


def depends(expression: str, unsure: set[str]) -> bool:
    """Whether a generated column's value does, by the session or by one of the columns (in small letters)."""
    named = {name.replace("``", "`").lower() for name in NAME.findall(expression)}
    return bool(named & unsure or SESSION.search(NAME.sub("", expression)))


def _told(server: Server, rows: Iterable[Row], what: str, step: str) -> Iterator[Finding]:
    as_it_is = server.pipeline.columns.as_it_is
    for _, ours in server.levels(row for row in rows if as_it_is(*row[:3])):
        listed = ", ".join(f"{row[0]}.{row[1]}.{row[2]}" for row in ours)
        names = ", ".join(f'"{row[0]}.{row[1]}.{row[2]}"' for row in ours)
        other = f"leave them out (columns.exclude: [{names}])"
        tables = excluding(list(dict.fromkeys(f"{row[0]}.{row[1]}" for row in ours)))
        yield Finding("warning", "columns", f"{what}: {listed}", f"{step}, {other}, or write {tables}")
