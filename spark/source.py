"""The jobs' own questions to the source: shapes, positions, key boundaries. Rows go through Spark's JDBC reader.

Every session is in UTC with an empty sql_mode, so that a value's text depends on nothing but the value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pymysql

from contract.pipeline import Pipeline
from contract.schema import Column, TableSchema
from contract.types import SPELLINGS
from spark.errors import LakeError
from spark.servers import SERVERS, Place, known

FLOAT_BYTES = 4  # of a VECTOR's element
MEMBER = re.compile(r"'((?:[^']|'')*)'")
ESCAPE = re.compile(r"''|\\.", re.DOTALL)  # as COLUMN_TYPE spells a member's characters
CHARSETS = {"utf8": "utf8mb3"}  # as MySQL before 8.0.28 calls it
BYTES = "binary"  # of an ENUM or SET, of which MySQL names no character set then
ESCAPES = {"\\0": "\0", "\\n": "\n", "\\r": "\r"}

COLUMNS = """
SELECT table_schema, table_name, column_name, lower(data_type), lower(column_type) like '%%unsigned%%',
       character_maximum_length, numeric_precision, numeric_scale, datetime_precision, character_set_name,
       is_nullable = 'YES', column_type
FROM information_schema.columns WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position
"""
KEYS = """
SELECT column_name FROM information_schema.statistics
WHERE table_schema = %s AND table_name = %s AND index_name = 'PRIMARY' ORDER BY seq_in_index
"""
TABLES = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' ORDER BY 1, 2"
VERSIONED = TABLES.replace("BASE TABLE", "SYSTEM VERSIONED")


def session_of(pipeline: Pipeline) -> dict[str, str]:
    """What each session of the source sets, as `name` and the text of its value."""
    return {**SERVERS[pipeline.source.flavor].session, **pipeline.columns.session()}


class Source:
    """One connection, autocommit. Raises LakeError where the server cannot be used."""

    def __init__(self, pipeline: Pipeline) -> None:
        self.pipeline = pipeline
        source = pipeline.source
        self.server = SERVERS[source.flavor]
        try:
            password = source.secret()
        except OSError as error:
            raise LakeError(
                f"{source.password_file}, the source's password, cannot be read: {error.strerror}"
            ) from None
        self.connection = pymysql.connect(
            host=source.host, port=source.port, user=source.user, password=password, charset="utf8mb4",
            autocommit=True, connect_timeout=int(source.connect_timeout_seconds) or 1, program_name="headrace-lake",
            init_command="SET " + ", ".join(f"{name}={value}" for name, value in session_of(pipeline).items()),
        )  # fmt: skip

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def row(self, sql: str, *arguments: Any) -> Sequence[Any] | None:
        with self.connection.cursor() as cursor:
            cursor.execute(sql, arguments or None)
            return cursor.fetchone()

    def rows(self, sql: str, *arguments: Any) -> Sequence[Sequence[Any]]:
        with self.connection.cursor() as cursor:
            cursor.execute(sql, arguments or None)
            return list(cursor.fetchall())

    def value(self, sql: str, *arguments: Any) -> Any:
        row = self.row(sql, *arguments)
        return row[0] if row else None

    def executed(self) -> str:
        """The GTID set of the transactions whose changes a query sees."""
        return self.server.executed(self.row)

    def position(self) -> Place:
        """The end of the binlog: at or behind everything that a query begun before now can see."""
        return known(self.server.end(self.row))

    @contextmanager
    def consistent(self) -> Iterator[Place]:
        """A consistent read in this connection, and a place in the binlog at or behind all that it sees."""
        try:
            yield known(self.server.begin(self.row))
        finally:
            self.row("COMMIT")

    def wait_for(self, gtid_set: str, seconds: int) -> None:
        """Returns once a query sees every transaction of the set."""
        if gtid_set and not self.server.sees(self.row, gtid_set, seconds):
            raise LakeError(
                f"{self.server.title} at {self.pipeline.source.host}:{self.pipeline.source.port} does not have the "
                f"transactions of the streamer's checkpoint ({gtid_set}) after {seconds} s: this is another server "
                "than the streamer reads, or one that was reset. Point source.host at the streamer's server"
            )

    def tables(self) -> list[tuple[str, str]]:
        """The pipeline's tables that exist."""
        found = self.rows(TABLES)
        return [(db, t) for db, t in found if self.pipeline.tables.match(db, t)]

    def versioned(self) -> list[tuple[str, str]]:
        """Those with MariaDB's system versioning, whose history is rows of the binlog as well."""
        found = self.rows(VERSIONED)
        return [(db, t) for db, t in found if self.pipeline.tables.match(db, t)]

    def schema(self, db: str, table: str) -> TableSchema | None:
        """The table's shape now, version 0; None where there is no such table."""
        columns = tuple(_column(row) for row in self.rows(COLUMNS, db, table))
        key = tuple(str(row[0]) for row in self.rows(KEYS, db, table))
        return TableSchema(db=db, table=table, columns=columns, key=key) if columns else None


def _column(row: Sequence[Any]) -> Column:
    _, _, name, kind, unsigned, characters, precision, scale, fsp, charset, nullable, spelled = row
    spelled = spelled.decode() if isinstance(spelled, bytes) else spelled
    kind = kind.decode() if isinstance(kind, bytes) else kind
    kind = SPELLINGS.get(kind, kind)
    length = characters if kind in ("char", "varchar", "binary", "varbinary") else None
    if kind == "vector":
        length = characters // FLOAT_BYTES
    return Column(
        name=name,
        type=kind,
        unsigned=bool(unsigned),
        length=int(precision) if kind == "bit" else length,
        precision=int(precision) if kind == "decimal" else None,
        scale=int(scale) if kind == "decimal" else None,
        fsp=int(fsp or 0) if kind in ("time", "datetime", "timestamp") else 0,
        charset=BYTES if charset is None and kind in ("enum", "set") else CHARSETS.get(charset, charset),
        nullable=bool(nullable),
        members=_members(spelled) if kind in ("enum", "set") else (),
    )


def _members(spelled: str) -> tuple[str, ...]:
    return tuple(
        ESCAPE.sub(lambda match: ESCAPES.get(match[0], match[0][1]), member) for member in MEMBER.findall(spelled)
    )
