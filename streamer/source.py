"""What is asked of the source by plain SQL: which server it is, where it stands, which tables take part."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pymysql

from contract.pipeline import Pipeline, Source
from streamer.connection import connect, refused
from streamer.errors import SourceRefusedError
from streamer.flavors import FLAVORS, flavor
from streamer.flavors.port import Facts

__all__ = ["Facts", "facts", "tables"]

TABLES = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' ORDER BY 1, 2"


def facts(source: Source) -> Facts:
    """Asks the server. Raises UnreachableError, AccessDeniedError, SourceRefusedError."""
    with _cursor(source) as cursor:
        refuse_other_flavor(source, cursor)
        found = flavor(source).facts(cursor)
    if found is None:
        hint = "Set log_bin in the server's configuration and restart it."
        raise SourceRefusedError(
            "read", f"the binlog of {source.host}:{source.port}", "the server writes no binlog", hint
        )
    return found


def refuse_other_flavor(source: Source, cursor: Any) -> None:
    """Raises SourceRefusedError."""
    cursor.execute("SELECT @@version")
    [version] = cursor.fetchone()
    chosen = flavor(source)
    if not chosen.owns(version):
        other = next(name for name, one in FLAVORS.items() if one.owns(version))
        what = f"the server is {version}, the pipeline file says {chosen.title}"
        hint = f"Write flavor: {other} under source in the pipeline file"
        raise SourceRefusedError("read", f"the server at {source.host}:{source.port}", what, hint)


def tables(pipeline: Pipeline) -> list[tuple[str, str]]:
    """`(db, table)` of every base table that the file's section `tables` chooses, in order. Raises as `facts`."""
    with _cursor(pipeline.source) as cursor:
        cursor.execute(TABLES)
        return [(db, table) for db, table in cursor.fetchall() if pipeline.tables.match(db, table)]


@contextmanager
def _cursor(source: Source) -> Iterator[Any]:
    try:
        with connect(source, read_timeout=60) as connection, connection.cursor() as cursor:
            yield cursor
    except pymysql.MySQLError as error:
        raise refused(source, error) from None
