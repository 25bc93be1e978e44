"""What is asked of the source by plain SQL: which server it is, where it stands, which tables take part."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pymysql

from contract.gtid import GtidSet
from contract.pipeline import Pipeline, Source
from streamer.errors import AccessDeniedError, HeadraceError, SourceRefusedError, UnreachableError

TABLES = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' ORDER BY 1, 2"
IDENTITY = "SELECT @@server_id, @@server_uuid, @@version, @@global.gtid_purged"
DENIED = frozenset({1044, 1045, 1142, 1227, 1698})
# 1040: no connection is free; 1053: the server is stopping. Both pass.
AWAY = frozenset({1040, 1053, 2002, 2003, 2005, 2006, 2013})
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
    with _cursor(source, "asking") as cursor:
        cursor.execute(IDENTITY)
        server_id, server_uuid, version, purged = cursor.fetchone()
        cursor.execute("SHOW BINARY LOGS")
        files = cursor.fetchall()
        status = _log_status(cursor)
    if status is None or not files:
        hint = "Set log_bin in the server's configuration and restart it."
        raise SourceRefusedError("reading the binlog of", _where(source), "the server writes no binlog", hint)
    file, pos, *_, executed = status
    gtids = GtidSet.parse
    return Facts(server_id, server_uuid, version, gtids(purged), gtids(executed), file, pos, files[0][0])


def tables(pipeline: Pipeline) -> list[tuple[str, str]]:
    """`(db, table)` of every base table that the file's section `tables` chooses, in order. Raises as `facts`."""
    with _cursor(pipeline.source, "listing the tables of") as cursor:
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
def _cursor(source: Source, operation: str) -> Iterator[Any]:
    try:
        with (
            pymysql.connect(
                host=source.host,
                port=source.port,
                user=source.user,
                password=source.secret(),
                connect_timeout=max(1, round(source.connect_timeout_seconds)),
                read_timeout=60,
                charset="utf8mb4",
            ) as connection,
            connection.cursor() as cursor,
        ):
            yield cursor
    except pymysql.MySQLError as error:
        raise _typed(error, operation, source) from None
    except OSError as error:
        hint = "Mend source.password_file in the pipeline file."
        cause = f"the password cannot be read ({error.strerror})"
        raise AccessDeniedError(operation, _where(source), cause, hint) from None


def _where(source: Source) -> str:
    return f"MySQL at {source.host}:{source.port} as {source.user}"


def _typed(error: pymysql.MySQLError, operation: str, source: Source) -> HeadraceError:
    code, text = error.args if len(error.args) == 2 else (0, str(error))
    if code in AWAY:
        hint = "Start the server, or mend source.host and source.port in the pipeline file."
        return UnreachableError(operation, _where(source), str(text), hint)
    if code in DENIED:
        hint = "Mend source.user and the password, and grant SELECT, REPLICATION SLAVE, REPLICATION CLIENT."
        return AccessDeniedError(operation, _where(source), str(text), hint)
    return SourceRefusedError(operation, _where(source), f"{text} ({code})", "See the server's error log.")
