"""What is asked of the source by plain SQL: which server it is, where it stands, which tables take part."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

import pymysql

from contract.gtid import GtidSet
from contract.pipeline import Pipeline, Source
from streamer.connection import connect
from streamer.connection_errors import refused
from streamer.errors import HeadraceError, SourceRefusedError
from streamer.flavors import FLAVORS, dump, flavor
from streamer.flavors.port import End, Facts

__all__ = [
    "End",
    "Facts",
    "before",
    "channels",
    "computes",
    "end",
    "facts",
    "files",
    "lacks_gtid",
    "now",
    "readers",
    "tables",
]

TABLES = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' ORDER BY 1, 2"
COMPUTED = (
    "SELECT COUNT(*), SUM(COALESCE(generation_expression, '') <> '') FROM information_schema.columns "
    "WHERE table_schema = %s AND table_name = %s"
)


def facts(source: Source) -> Facts:
    """Asks the server. Raises UnreachableError, AccessDeniedError, SourceRefusedError."""
    with _cursor(source) as cursor:
        refuse_other_flavor(source, cursor)
        found = flavor(source).facts(cursor)
    if found is None:
        hint = "Set log_bin in the server's configuration and restart it."
        raise SourceRefusedError("read", f"the binlog of {source.where}", "the server writes no binlog", hint)
    return found


def end(source: Source) -> End | None:
    """Where the binlog ends, None of a server without one. Raises as `facts`."""
    with _cursor(source) as cursor:
        return flavor(source).end(cursor)


def before(source: Source, file: str) -> GtidSet | None:
    """The transactions before a binlog file, None where the server has no such file. Raises as `facts`."""
    with _cursor(source) as cursor:
        return flavor(source).before(cursor, file)


def lacks_gtid(source: Source, file: str, pos: int) -> bool:
    """Whether the first transaction behind that place has no GTID. Raises as `facts`."""
    with _cursor(source) as cursor:
        return flavor(source).lacks_gtid(cursor, file, pos)


def files(source: Source) -> dict[str, int]:
    """The binlog files, the oldest first, and their sizes in bytes. Raises as `facts`."""
    with _cursor(source) as cursor:
        cursor.execute("SHOW BINARY LOGS")
        return {row[0]: int(row[1]) for row in cursor.fetchall()}


def now(source: Source) -> datetime:
    """The server's clock. Raises as `facts`."""
    with _cursor(source) as cursor:
        cursor.execute("SELECT UNIX_TIMESTAMP(NOW(6))")
        return datetime.fromtimestamp(float(cursor.fetchone()[0]), UTC)


def channels(source: Source) -> list[dict[str, Any]] | None:
    """How the server's replication stands, a row a channel; None where the user may not know. Raises as `facts`."""
    with _cursor(source) as cursor:
        refuse_other_flavor(source, cursor)
        return dump.channels(cursor, *flavor(source).replication)


def readers(source: Source, version: str) -> set[tuple[int, str]]:
    """Server id and UUID of each client that reads the binlog now; of one that was killed for some heartbeats still.
    `version`: the server's. Empty where the user may not list them, as on MariaDB without REPLICATION MASTER
    ADMIN. Raises as `facts`."""
    with _cursor(source) as cursor:
        numbers = tuple(map(int, version.partition("-")[0].split(".")))
        return {(int(row[0]), str(row[-1])) for row in flavor(source).replicas(dump.asking(cursor), numbers) or []}


def refuse_other_flavor(source: Source, cursor: Any) -> None:
    """Raises SourceRefusedError."""
    cursor.execute("SELECT @@version")
    [version] = cursor.fetchone()
    chosen = flavor(source)
    if not chosen.owns(version):
        other = next(name for name, one in FLAVORS.items() if one.owns(version))
        what = f"the server is {version}, the pipeline file says {chosen.title}"
        hint = f"Write flavor: {other} under source in the pipeline file"
        raise SourceRefusedError("read", f"the server at {source.where}", what, hint)


def tables(pipeline: Pipeline) -> list[tuple[str, str]]:
    """`(db, table)` of every base table that the file's section `tables` chooses, in order. Raises as `facts`."""
    with _cursor(pipeline.source) as cursor:
        cursor.execute(TABLES)
        return [(db, table) for db, table in cursor.fetchall() if pipeline.tables.match(db, table)]


def computes(source: Source, db: str, table: str) -> bool:
    """Whether the table has computed columns by now; also where it is gone, or the server does not answer."""
    try:
        with _cursor(source) as cursor:
            cursor.execute(COMPUTED, (db, table))
            columns, computed = cursor.fetchone()
            return not columns or computed > 0
    except HeadraceError:
        return True


@contextmanager
def _cursor(source: Source) -> Iterator[Any]:
    try:
        with connect(source, read_timeout=60) as connection, connection.cursor() as cursor:
            yield cursor
    except pymysql.MySQLError as error:
        raise refused(source, error) from None
