"""Tables that have rows of before the first start, which no stream brings: a snapshot reads them."""

from __future__ import annotations

from contextlib import closing

import pymysql

from contract.checkpoint import Checkpoint
from contract.names import quoted
from contract.pipeline import Pipeline, Source
from contract.start_at import FIRST
from streamer import source
from streamer.connection import connect
from streamer.connection_errors import refused
from streamer.source import Facts

# Where GTIDs were off, nothing else than the first file's name tells that nothing was before.
BEGINNING = 1, FIRST
WAITING = " LOCK IN SHARE MODE"  # for what is in the binlog already, and not yet to be seen
BOUNDS = "SET innodb_lock_wait_timeout = 1, lock_wait_timeout = 1"  # seconds


def unread(pipeline: Pipeline, facts: Facts, begin: Checkpoint) -> list[str]:
    """`db.table` of the pipeline's tables that may have rows of before `begin`; none where the binlog is streamed from
    its very beginning on. What is made or dropped since then comes in the stream, and is told there. Raises as
    `source.tables`."""
    behind_nothing = not facts.purged and not (begin.behind if facts.gtids else "")
    if begin.place[1:] == BEGINNING and behind_nothing:
        return []
    seen = facts.gtids and pipeline.source.flavor == "mysql"  # its executed set has what is to be seen alone
    tables = source.tables(pipeline)
    return [f"{db}.{table}" for db, table in _with_rows(pipeline.source, tables, "" if seen else WAITING)]


def _with_rows(reading: Source, tables: list[tuple[str, str]], locking: str) -> list[tuple[str, str]]:
    """Those that are not certainly empty: one that cannot be read, or not soon, counts as one with rows."""
    try:
        with closing(connect(reading, read_timeout=60)) as connection, connection.cursor() as cursor:
            cursor.execute(BOUNDS)
            return [name for name in tables if not _empty(cursor, *name, locking)]
    except pymysql.MySQLError as error:
        raise refused(reading, error) from None


def _empty(cursor: pymysql.cursors.Cursor, db: str, table: str, locking: str) -> bool:
    try:
        cursor.execute(f"SELECT 1 FROM {quoted(db)}.{quoted(table)} LIMIT 1{locking}")
        return cursor.fetchone() is None
    except pymysql.MySQLError:
        return False
