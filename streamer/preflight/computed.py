"""The check of columns of which a query tells each session something else, or less than the binlog has.

A VIRTUAL column's value is computed for whoever reads it: the binlog has what the writer's session saw, a snapshot and
a check what their own do, in UTC and with an empty sql_mode (MySQL's manual, "CREATE TABLE and Generated Columns").
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

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
# What depends on the session or the moment; MariaDB takes all of them in a VIRTUAL column, MySQL some.
SESSION = re.compile(
    r"\b(now|curdate|curtime|current_\w+|localtime\w*|sysdate|utc_\w+|unix_timestamp|from_unixtime|user|session_user|"
    r"database|schema|dayname|monthname|date_format|connection_id|rand|uuid)\b",
    re.IGNORECASE,
)
NAME = re.compile(r"`((?:[^`]|``)*)`")


def computed(server: Server) -> Iterator[Finding]:
    """Nothing of a pipeline that feeds no lake, since nobody asks the server for rows then."""
    if not server.pipeline.feeds_lake:
        return
    moments = defaultdict(set)
    for db, table, column in server.ask(MOMENTS) or []:
        moments[db, table].add(str(column).lower())
    rows = [row for row in server.ask(VIRTUAL) or [] if _depends(str(row[3]), moments[row[0], row[1]])]
    yield from _told(
        server,
        rows,
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


def _depends(expression: str, moments: set[str]) -> bool:
    named = {name.replace("``", "`").lower() for name in NAME.findall(expression)}
    return bool(named & moments or SESSION.search(NAME.sub("", expression)))


def _told(server: Server, rows: list[tuple[object, ...]], what: str, step: str) -> Iterator[Finding]:
    for _, ours in server.levels(rows):
        listed = ", ".join(f"{row[0]}.{row[1]}.{row[2]}" for row in ours)
        names = ", ".join(f'"{row[0]}.{row[1]}.{row[2]}"' for row in ours)
        other = f"leave them out (columns.exclude: [{names}])"
        tables = excluding(list(dict.fromkeys(f"{row[0]}.{row[1]}" for row in ours)))
        yield Finding("warning", "columns", f"{what}: {listed}", f"{step}, {other}, or write {tables}")
