"""Asks the server how a table is defined, for columns that its binlog does not tell for certain (MariaDB).

The answer is of now, and the rows are of before: it holds for them where the table was not defined anew since. The
binlog between the two tells, and is read for it (streamer/definitions_since.py). What is not in the binlog (a session
without sql_log_bin) the server's clock tells, CREATE_TIME: a definition later than the rows, and than the last
statement on the table that was read, is a doubt, too.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import closing
from typing import NamedTuple

import pymysql

from contract.gtid import GtidSet
from contract.pipeline import Source
from streamer.connection import connect, refused
from streamer.ddl import statement as ddl
from streamer.definitions_since import any_statement
from streamer.protocol.unclear import Definition, doubt

TABLE = """
SELECT UNIX_TIMESTAMP(create_time), @@gtid_binlog_pos FROM information_schema.tables
WHERE table_schema = %s AND table_name = %s AND table_type = 'BASE TABLE'
"""
COLUMNS = """
SELECT column_name, data_type, column_type, datetime_precision FROM information_schema.columns
WHERE table_schema = %s AND table_name = %s ORDER BY ordinal_position
"""
KIND = "SELECT table_type FROM information_schema.tables WHERE table_schema = %s AND table_name = %s"
REMEMBERED, LONGEST = 100, 10_000  # statements, characters of each
# ALTER TABLE changes the type of a column that it names, or of the table that takes this one's name.
ALTER, ANOTHER = re.compile(r"\s*alter\s"), re.compile(r"\b(rename|exchange)\b")


class Said(NamedTuple):
    """An answer. `executed`: the transactions it may be behind; `asked`: the columns that the binlog does not tell."""

    columns: Mapping[str, Definition]
    asked: Sequence[str]
    executed: GtidSet


class Statement(NamedTuple):
    """`db`: the session's database. `text`: in lower case. `ended`: Unix seconds."""

    db: str
    text: str
    ended: int

    def is_of(self, db: str, table: str) -> bool:
        """Whether it may be about the table."""
        return self.names(table) and (self.db == db or self.names(db))

    def leaves(self, columns: Sequence[str]) -> bool:
        """Whether the columns of its table are for certain what they were."""
        if len(self.text) >= LONGEST or ANOTHER.search(self.text):
            return False
        if not ALTER.match(self.text):  # ANALYZE, GRANT, an index, a view and their like, or TRUNCATE
            return ddl.change(self.text, self.db).kind in ("harmless", "truncate")
        return not any(map(self.names, columns))

    def names(self, name: str) -> bool:
        """Of a statement that is kept in part: perhaps."""
        name = name.replace("`", "``")
        return (
            len(self.text) >= LONGEST or re.search(rf"(?<!\w){re.escape(name.casefold())}(?!\w)", self.text) is not None
        )


class Definitions:
    """Of the server at `source`, which may become another one that has the same transactions. `taken`: the whole
    transactions that were read so far. It remembers what was said, and the statements that were read."""

    def __init__(self, source: Source, taken: Callable[[], GtidSet]) -> None:
        self.source = source
        self.taken = taken
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

    def changed(self, db: str, statement: str, gtid: str, ended: int) -> None:
        read = Statement(db, statement[:LONGEST].casefold(), ended)
        self._read.append(read)
        self._shown = {name: shown for name, shown in self._shown.items() if not read.is_of(*name)}
        for (db, table), said in list(self._said.items()):
            if not read.is_of(db, table) or read.leaves(said.asked):
                continue
            if said.executed.contains(gtid):
                raise doubt(f"{db}.{table}", "it was defined anew behind rows that were read by its new definition")
            del self._said[db, table]

    def _answer(self, db: str, table: str, asked: Sequence[str], at: int, gtid: str) -> Said:
        """Raises UnclearTypeError where it may not hold for rows of `at` in the transaction `gtid`."""
        made, executed, columns = self._ask(db, table)
        if made is None:
            raise doubt(f"{db}.{table}", "the server no longer has the table")
        read = [statement.ended for statement in self._read if statement.is_of(db, table)]
        if made > max(at, *read, 0):
            raise doubt(f"{db}.{table}", "it was defined anew since these rows were written")
        known = self.source.gtids(executed)

        def defines_it_anew(session: str, text: str, its: str) -> bool:
            # A transaction's own statements stand before its rows, and were read.
            statement = Statement(session, text[:LONGEST].casefold(), 0)
            return its != gtid and statement.is_of(db, table) and not statement.leaves(asked)

        if any_statement(self.source, self.taken(), known, defines_it_anew):
            raise doubt(f"{db}.{table}", "it was defined anew behind these rows")
        return Said(columns, asked, known)

    def _ask(self, db: str, table: str) -> tuple[int | None, str, dict[str, Definition]]:
        with closing(connect(self.source, read_timeout=60)) as connection, connection.cursor() as cursor:
            cursor.execute("SET time_zone = '+00:00'")
            cursor.execute(COLUMNS, (db, table))
            columns = {name: Definition(kind.lower(), spelled, fsp or 0) for name, kind, spelled, fsp in cursor}
            cursor.execute(TABLE, (db, table))
            made, executed = cursor.fetchone() or (None, "")
            return made, executed or "", columns

    def _ask_shown(self, db: str, table: str) -> tuple[str, Set[str]]:
        with closing(connect(self.source, read_timeout=60)) as connection, connection.cursor() as cursor:
            cursor.execute(KIND, (db, table))
            [kind] = cursor.fetchone() or ("",)
            cursor.execute(COLUMNS, (db, table))
            return kind, {name for name, *_ in cursor}
