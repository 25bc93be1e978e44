"""Asks the server how a table is defined, for columns that its binlog does not tell for certain (MariaDB).

The answer is of now, and the rows are of before: it holds for them where the table was not defined anew since. The
server tells when it was (CREATE_TIME changes with every ALTER and RENAME); a definition later than the rows, and than
the last statement on the table that was read, is a doubt. What the clock's whole seconds hide comes out when the
statement itself is read.
"""

from __future__ import annotations

import re
from collections import deque
from contextlib import closing

import pymysql

from contract.gtid import GtidSet
from contract.pipeline import Source
from streamer.connection import connect, refused
from streamer.protocol.unclear import Definition, doubt

TABLE = """
SELECT UNIX_TIMESTAMP(create_time), @@gtid_binlog_pos FROM information_schema.tables
WHERE table_schema = %s AND table_name = %s AND table_type = 'BASE TABLE'
"""
COLUMNS = """
SELECT column_name, data_type, column_type, datetime_precision FROM information_schema.columns
WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position
"""
REMEMBERED, LONGEST = 100, 10_000  # statements, characters of each


class Definitions:
    """Of the server at `source`, which may become another one that has the same transactions. It remembers what was
    said, and the statements that were read."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._said: dict[tuple[str, str], tuple[int, GtidSet]] = {}  # when made; the transactions it may be behind
        self._read: deque[tuple[str, int]] = deque(maxlen=REMEMBERED)  # statements, and when they ended

    def of(self, db: str, table: str, at: int) -> list[Definition]:
        try:
            made, executed, columns = self._ask(db, table)
        except pymysql.MySQLError as error:
            raise refused(self.source, error) from None
        name = f"{db}.{table}"
        if made is None:
            raise doubt(name, "the server no longer has the table")
        read = [ended for statement, ended in self._read if _names(statement, table)]
        if made > max(at, *read, 0):
            raise doubt(name, "it was defined anew since these rows were written")
        self._said[db, table] = made, self.source.gtids(executed)
        return columns

    def changed(self, statement: str, gtid: str, began: int, ended: int) -> None:
        self._read.append((statement[:LONGEST].casefold(), ended))
        for (db, table), (made, executed) in list(self._said.items()):
            if not _names(self._read[-1][0], table):
                continue
            if made >= began and executed.issuperset(self.source.gtids(gtid)):
                raise doubt(f"{db}.{table}", "it was defined anew behind rows that were read by its new definition")
            del self._said[db, table]

    def _ask(self, db: str, table: str) -> tuple[int | None, str, list[Definition]]:
        with closing(connect(self.source, read_timeout=60)) as connection, connection.cursor() as cursor:
            cursor.execute("SET time_zone = '+00:00'")
            cursor.execute(COLUMNS, (db, table))
            columns = [Definition(name, kind.lower(), spelled, fsp or 0) for name, kind, spelled, fsp in cursor]
            cursor.execute(TABLE, (db, table))
            made, executed = cursor.fetchone() or (None, "")
            return made, executed or "", columns


def _names(statement: str, table: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(table.casefold())}(?!\w)", statement) is not None
