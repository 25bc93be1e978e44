"""What is asked of the source by plain SQL: which server it is, where it stands, which tables take part."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pymysql

from contract.gtid import GtidSet
from contract.pipeline import Pipeline, Source
from streamer.connection import connect, refused
from streamer.errors import SourceRefusedError

TABLES = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' ORDER BY 1, 2"
IDENTITY = "SELECT @@server_id, @@server_uuid, @@version, @@global.gtid_purged"
NO_SUCH_STATEMENT = 1064


@dataclass(frozen=True)
class Facts:
    """`file`, `pos`, `executed`: one consistent reading of the end of the binlog. `first_file`: the oldest one."""

    server_id: int
    server_uuid: str
    version: str
    purged: GtidSet
    executed: GtidSet
    file: str
    pos: int
    first_file: str


def facts(source: Source) -> Facts:
    """Asks the server. Raises UnreachableError, AccessDeniedError, SourceRefusedError."""
    with _cursor(source) as cursor:
        cursor.execute(IDENTITY)
        server_id, server_uuid, version, purged = cursor.fetchone()
        cursor.execute("SHOW BINARY LOGS")
        files = cursor.fetchall()
        status = _log_status(cursor)
    if status is None or not files:
        hint = "Set log_bin in the server's configuration and restart it."
        raise SourceRefusedError(
            "read", f"the binlog of {source.host}:{source.port}", "the server writes no binlog", hint
        )
    file, pos, *_, executed = status
    gtids = GtidSet.parse
    return Facts(server_id, server_uuid, version, gtids(purged), gtids(executed), file, pos, files[0][0])


def tables(pipeline: Pipeline) -> list[tuple[str, str]]:
    """`(db, table)` of every base table that the file's section `tables` chooses, in order. Raises as `facts`."""
    with _cursor(pipeline.source) as cursor:
        cursor.execute(TABLES)
        return [(db, table) for db, table in cursor.fetchall() if pipeline.tables.match(db, table)]


def _log_status(cursor: Any) -> Any:
    try:
        cursor.execute("SHOW BINARY LOG STATUS")
    except pymysql.ProgrammingError as error:
        if error.args[0] != NO_SUCH_STATEMENT:
            raise
        cursor.execute("SHOW MASTER STATUS")  # servers before 8.2
    return cursor.fetchone()


@contextmanager
def _cursor(source: Source) -> Iterator[Any]:
    try:
        with connect(source, read_timeout=60) as connection, connection.cursor() as cursor:
            yield cursor
    except pymysql.MySQLError as error:
        raise refused(source, error) from None
