"""The jobs' own questions to the source: shapes, positions, key boundaries. Rows go through Spark's JDBC reader.

Every session is in UTC with an empty sql_mode, so that a value's text depends on nothing but the value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pymysql
from pymysql.cursors import DictCursor

from contract import information_schema, tls
from contract.pipeline import Pipeline
from contract.pipeline_columns import Shown
from contract.schema import TableSchema
from spark.errors import LakeError, TableError
from spark.source import no_days
from spark.source.servers import SERVERS, Place, known

CHECKS_KNOWN = """
SELECT count(*) FROM information_schema.tables WHERE table_schema = 'information_schema'
AND lower(table_name) = 'check_constraints'
"""
CHECKS = """
SELECT c.constraint_name, c.check_clause FROM information_schema.check_constraints c
JOIN information_schema.table_constraints t
ON c.constraint_schema = t.constraint_schema AND c.constraint_name = t.constraint_name
WHERE t.constraint_type = 'CHECK' AND t.enforced = 'YES' AND t.table_schema = %s AND t.table_name = %s"""
# MariaDB shows a user who may but read no row of table_constraints, and a column's own constraint has its name.
MARIADB_CHECKS = """
SELECT if(level = 'Column', concat(constraint_name, ', of the column'), constraint_name), check_clause
FROM information_schema.check_constraints WHERE constraint_schema = %s AND table_name = %s"""
TABLES = "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' ORDER BY 1, 2"
ABOUT = "SELECT coalesce(table_rows, 0) FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"
MADE = "SELECT create_time FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"
# Without a row where the engine is not told: of what is broken, and of an engine that is not there.
ENGINE = """
SELECT e.transactions FROM information_schema.tables t JOIN information_schema.engines e ON e.engine = t.engine
WHERE t.table_schema = %s AND t.table_name = %s"""
VERSIONED = TABLES.replace("BASE TABLE", "SYSTEM VERSIONED")

BEGUN = "headrace_begun"  # a savepoint: of what is locked behind it, a return to it lets go
PLACE = "concat(@@server_id, ' ', @@hostname)"
OTHER_ANSWERS = "Subquery returns more than 1 row"
OTHER_SERVER = (
    "an address that stands for several servers, or a failover. Name one server alone (source.host, snapshot.replica), "
    "then run this again"
)
# Seconds for which a statement may say nothing: behind them the server, or the way to it, stands still. The longest is
# one checksum over a table that cannot be read in parts.
SILENT = 6 * 3600
MADE_ANEW = 1412  # "Table definition has changed, please retry transaction"


def session_of(pipeline: Pipeline) -> dict[str, str]:
    """What each session of the source sets, as `name` and the text of its value."""
    return {**SERVERS[pipeline.source.flavor].session, **pipeline.columns.session()}


class Source:
    """One connection, autocommit. `replica`: it is not the server that the streamer reads, but one behind it.
    `identity`, `place`: which server that is, and where it runs (MariaDB makes its name of the network card's, which
    containers may share): one address may stand for several, and what one of them has another may not have yet.
    Raises LakeError where the server cannot be used, or a new connection is to another one."""

    def __init__(self, pipeline: Pipeline, replica: bool = False, identity: str = "", place: str = "") -> None:
        self.pipeline, self.replica, self.identity, self.place = pipeline, replica, identity, place
        self.server = SERVERS[pipeline.source.flavor]
        self._connect()

    def _connect(self) -> None:
        self.connection = self._connected()
        found, place = map(str, self.rows(f"SELECT {self.server.named}, {PLACE}")[0])
        if self.place and (found, place) != (self.identity, self.place):
            self.connection.close()
            raise LakeError(
                f"{self.pipeline.source.where} is the server {found} ({place}) now, and rows were read of "
                f"{self.identity} ({self.place}): {OTHER_SERVER}"
            )
        self.identity, self.place = found, place

    @property
    def only(self) -> str:
        """SQL that fails (OTHER_ANSWERS) in a session of another server, for connections that others make."""
        same = f"{self.server.named} = '{self.identity}' AND {PLACE} = '{self.place}'"
        return f"SET @headrace = if({same}, 1, (SELECT 1 UNION ALL SELECT 2))"

    def _connected(self) -> pymysql.Connection[Any]:
        source = self.pipeline.source
        try:
            password = source.secret()
        except OSError as error:
            raise LakeError(
                f"{source.password_file}, the source's password, cannot be read: {error.strerror}. Give it to the user "
                f"that runs this job, or mend source.password_file in {self.pipeline.path}"
            ) from None
        try:
            encrypted = tls.settings(source.tls)
        except tls.TlsFileError as error:
            raise LakeError(str(error)) from None
        sets = ", ".join(f"{name}={value}" for name, value in session_of(self.pipeline).items())
        return pymysql.connect(
            # Of a text it would make Latin-1, and servers keep the hash of its UTF-8.
            host=source.host, port=source.port, user=source.user, password=password.encode(), charset="utf8mb4",
            autocommit=True, connect_timeout=int(source.connect_timeout_seconds) or 1, program_name="headrace-lake",
            read_timeout=SILENT,
            init_command=f"SET {sets}{information_schema.SHOWS_GENERATED_KEYS}",
            **encrypted,
        )  # fmt: skip

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def again(self) -> Source:
        """Another connection to the same server."""
        return Source(self.pipeline, self.replica, self.identity, self.place)

    def awake(self) -> None:
        """To be said behind a long rest, in which the server (wait_timeout) or what is in between may have hung up."""
        try:
            self.connection.ping()
        except (pymysql.Error, OSError):
            self._connect()

    def row(self, sql: str, *arguments: Any) -> Sequence[Any] | None:
        with self.connection.cursor() as cursor:
            cursor.execute(self._asked(cursor, sql, arguments))
            return cursor.fetchone()

    def rows(self, sql: str, *arguments: Any) -> Sequence[Sequence[Any]]:
        with self.connection.cursor() as cursor:
            cursor.execute(self._asked(cursor, sql, arguments))
            return list(cursor.fetchall())

    def _asked(self, cursor: Any, sql: str, arguments: Sequence[Any]) -> str:
        return no_days.asked(cursor.mogrify(sql, arguments or None), self.pipeline.source.flavor)

    def named(self, sql: str) -> list[dict[str, Any]]:
        with self.connection.cursor(DictCursor) as cursor:
            cursor.execute(sql)
            return list(cursor.fetchall())

    def value(self, sql: str, *arguments: Any) -> Any:
        row = self.row(sql, *arguments)
        return row[0] if row else None

    def executed(self) -> str:
        """The GTID set of the transactions whose changes a query sees."""
        return self.server.executed(self.row)

    def seen(self) -> str:
        """A GTID set whose transactions every query from now on shows; empty where nobody can tell."""
        return self.server.seen(self.row)

    def position(self) -> Place:
        """The end of the binlog: at or behind everything that a query begun before now can see."""
        return known(self.server.end(self.row))

    @contextmanager
    def consistent(self) -> Iterator[Place]:
        """A consistent read in this connection, and a place in the binlog at or behind all that it sees."""
        try:
            place = known(self.server.begin(self.row))
            if self.server.lets_alter:
                self.row(f"SAVEPOINT {BEGUN}")
            yield place
        finally:
            self.row("COMMIT")

    def let_alter(self) -> None:
        """Within a consistent read, behind a statement of it: on a server that `lets_alter`, its table may be altered
        again, where else an ALTER TABLE, and all that comes behind it, would wait for the read's end. The read goes on
        as of the same moment, and raises the error MADE_ANEW where the table is not that of it any more."""
        if self.server.lets_alter:
            self.row(f"ROLLBACK TO SAVEPOINT {BEGUN}")

    def wait_for(self, gtid_set: str, seconds: int, job: str = "the snapshot") -> None:
        """Returns once a query sees every transaction of the set. `job`: what waits, in its message."""
        sees = self.server.applied if self.replica else self.server.sees
        if not gtid_set or sees(self.row, gtid_set, seconds):
            return
        if self.replica:
            raise LakeError(
                f"snapshot.replica, {self.pipeline.source.where}, has not applied what the streamer had sent when "
                f"{job} began ({gtid_set}) after {seconds} s: see whether it replicates from the streamer's server, "
                f"and how far it is behind; then run {job} again, or leave snapshot.replica out"
            )
        raise LakeError(
            f"{self.server.title} at {self.pipeline.source.where} does not have the transactions of the streamer's "
            f"checkpoint ({gtid_set}) after {seconds} s: this is another server than the streamer reads, or one that "
            "was reset. Point source.host at the streamer's server"
        )

    def channels(self, otherwise: str) -> list[dict[str, Any]]:
        """How the server's replication stands, a row a channel. Raises LakeError where the user may not ask; what can
        be done `otherwise` is said then."""
        try:
            return self.named(self.server.replication_sql(self.row))
        except pymysql.MySQLError as error:
            raise LakeError(
                f"{self.pipeline.source.where} does not say how its replication stands: {error.args[-1]}. Grant what "
                f"it names to {self.pipeline.source.user}, or {otherwise}"
            ) from None

    def tables(self) -> list[tuple[str, str]]:
        """The pipeline's tables that exist."""
        found = self.rows(TABLES)
        return [(db, t) for db, t in found if self.pipeline.tables.match(db, t)]

    def versioned(self) -> list[tuple[str, str]]:
        """Those with MariaDB's system versioning, whose history is rows of the binlog as well."""
        found = self.rows(VERSIONED)
        return [(db, t) for db, t in found if self.pipeline.tables.match(db, t)]

    def about(self, db: str, table: str) -> int:
        """The server's estimate of the table's rows."""
        return int(self.value(ABOUT, db, table) or 0)

    def snapshots(self, db: str, table: str) -> bool:
        """Whether a consistent read shows the table as of its begin: engines without transactions show what is there
        by the time of each statement."""
        return str(self.value(ENGINE, db, table)).upper() == "YES"

    def made(self, db: str, table: str) -> str:
        """When the server made the table: another time says that it is another table, or was written anew."""
        return str(self.value(MADE, db, table))

    def schema(self, db: str, table: str) -> TableSchema | None:
        """The table's shape now, version 0; None where there is no such table."""
        columns, keys = self.rows(information_schema.COLUMNS, db, table), self.rows(information_schema.KEYS, db, table)
        return information_schema.table(db, table, columns, keys)

    def shown(self, schema: TableSchema) -> Shown:
        """The source's table as the pipeline shows it, for who asks the source for its values."""
        shown = self.pipeline.show(schema)
        self.refuse_short_years(shown)
        return replace(shown, rounded=self.rounded(schema))

    def refuse_short_years(self, shown: Shown) -> None:
        """The stream has 1999 and 2000, of which the server says 99 and 0. Raises TableError."""
        if not any(column.type == "year" for column in shown.source.columns):
            return
        found = [row[0] for row in self.rows(information_schema.SHORT_YEARS, shown.schema.db, shown.schema.table)]
        if short := [column.name for column in shown.schema.columns if column.name in found]:
            raise TableError(
                f"{shown.schema.db}.{shown.schema.table}: of YEAR(2) the server tells no century ({', '.join(short)}): "
                "MODIFY it as YEAR there, or leave it out (columns.exclude), then run this again"
            )

    def rounded(self, schema: TableSchema) -> frozenset[str]:
        """The columns whose texts have fewer digits than their values."""
        if not any(column.type == "double" for column in schema.columns):
            return frozenset()
        return frozenset(str(row[0]) for row in self.rows(information_schema.ROUNDED, schema.db, schema.table))

    def checks(self, db: str, table: str) -> dict[str, str]:
        """The table's CHECK clauses by their names; none of a server that does not tell them (MySQL before 8.0.16)."""
        if not self.value(CHECKS_KNOWN):
            return {}
        asked = MARIADB_CHECKS if self.pipeline.source.flavor == "mariadb" else CHECKS
        return {str(name): str(clause) for name, clause in self.rows(asked, db, table)}
