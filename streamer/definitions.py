"""Asks the server how a table is defined, for columns that its binlog does not tell for certain (MariaDB).

The answer is of now, and the rows are of before: it holds for them where the table was not defined anew since. The
binlog between the two tells, and is read for it (streamer/definitions_since.py). What is not in the binlog (a session
without sql_log_bin) the server's clock tells, CREATE_TIME: a definition later than the rows, and than the last
statement on the table in the binlog, is a doubt, too. Of rows that came from another server it tells nothing: a replica
has the table since it made it itself.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import closing
from typing import NamedTuple

import pymysql

from contract.gtid import GtidSet
from contract.pipeline import Source
from streamer.connection import connect
from streamer.connection_errors import refused
from streamer.ddl.redefined import Statement, statement
from streamer.definitions_since import Ahead
from streamer.protocol.unclear import Definition, doubt

TABLE = """
SELECT UNIX_TIMESTAMP(create_time), @@server_id, @@gtid_binlog_pos FROM information_schema.tables
WHERE table_schema = %s AND table_name = %s AND table_type = 'BASE TABLE'
"""
COLUMNS = """
SELECT column_name, data_type, column_type, datetime_precision FROM information_schema.columns
WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position
"""
KIND = "SELECT table_type FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"
REMEMBERED = 100  # statements that were read


class Said(NamedTuple):
    """An answer. `executed`: the transactions it may be behind; `asked`: the columns that the binlog does not tell."""

    columns: Mapping[str, Definition]
    asked: Sequence[str]
    executed: GtidSet


class Now(NamedTuple):
    """How the server defines a table. `made`: when it did, Unix seconds; `executed`: what it has by then."""

    columns: dict[str, Definition]
    made: int
    server_id: int
    executed: str


class Definitions:
    """Of the server at `source`, which may become another one that has the same transactions. `taken`: the whole
    transactions that were read so far. It remembers what was said, and the statements that were read. `ahead`: those
    that are still to come."""

    def __init__(self, source: Source, taken: Callable[[], GtidSet], ahead: Ahead | None = None) -> None:
        self.source = source
        self.taken = taken
        self.ahead = ahead or Ahead()
        self._said: dict[tuple[str, str], Said] = {}
        self._shown: dict[tuple[str, str], tuple[str, Set[str]]] = {}
        self._read: deque[Statement] = deque(maxlen=REMEMBERED)

    def of(self, db: str, table: str, columns: Sequence[str], at: int, gtid: str) -> Mapping[str, Definition]:
        said = self._said.get((db, table))
        if said is None or not set(columns) <= set(said.asked):
            try:
                said = self._said[db, table] = self._answer(db, table, columns, at, gtid)
            except pymysql.MySQLError as error:
                raise refused(self.source, error) from None
        return said.columns

    def shown(self, db: str, table: str) -> tuple[str, Set[str]]:
        if (db, table) not in self._shown:
            try:
                self._shown[db, table] = self._ask_shown(db, table)
            except pymysql.MySQLError as error:
                raise refused(self.source, error) from None
        return self._shown[db, table]

    def changed(self, db: str, text: str, gtid: str, ended: int, escapes: bool = True) -> None:
        read = statement(db, text, ended, gtid, escapes)
        self._read.append(read)
        self._shown = {name: shown for name, shown in self._shown.items() if not read.is_of(*name)}
        for (db, table), said in list(self._said.items()):
            if not read.redefines(db, table, said.asked):
                continue
            if said.executed.contains(gtid):
                raise doubt(f"{db}.{table}", "it was defined anew behind rows that were read by its new definition")
            del self._said[db, table]

    def _answer(self, db: str, table: str, asked: Sequence[str], at: int, gtid: str) -> Said:
        """Raises UnclearTypeError where it may not hold for rows of `at` in the transaction `gtid`."""
        now = self._ask(db, table)
        if now is None:
            raise doubt(f"{db}.{table}", "the server no longer has the table")
        known = self.source.gtids(now.executed)
        last = max((one.ended for one in self._read if one.is_of(db, table)), default=0)
        for one in self.ahead.statements(self.source, self.taken(), known, f"{db}.{table}"):
            if one.gtid == gtid or not one.is_of(db, table):
                continue  # a transaction's own statements stand before its rows, and were read
            if one.redefines(db, table, asked):
                raise doubt(f"{db}.{table}", "it was defined anew behind these rows")
            last = max(last, one.ended)  # one that rebuilds the table, as a TRUNCATE does
        if now.made > max(at, last) and now.server_id == _server_of(gtid):
            raise doubt(f"{db}.{table}", "it was defined anew since these rows were written")
        return Said(now.columns, asked, known)

    def _ask(self, db: str, table: str) -> Now | None:
        with closing(connect(self.source, read_timeout=60)) as connection, connection.cursor() as cursor:
            cursor.execute(COLUMNS, (db, table))
            columns = {name: Definition(kind.lower(), spelled, fsp or 0) for name, kind, spelled, fsp in cursor}
            cursor.execute(TABLE, (db, table))
            found = cursor.fetchone()
            return found and Now(columns, found[0] or 0, found[1], found[2] or "")

    def _ask_shown(self, db: str, table: str) -> tuple[str, Set[str]]:
        with closing(connect(self.source, read_timeout=60)) as connection, connection.cursor() as cursor:
            cursor.execute(KIND, (db, table))
            [kind] = cursor.fetchone() or ("",)
            cursor.execute(COLUMNS, (db, table))
            return kind, {name for name, *_ in cursor}


def _server_of(gtid: str) -> int:
    """The number of the server that wrote it first."""
    return int(gtid.split("-")[1])
