"""Whether a statement may have defined a table anew, so that columns which the binlog does not tell are others."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from streamer.ddl import statement as ddl

LONGEST = 10_000  # characters of a statement that are kept; of a longer one nothing is certain
# ALTER TABLE changes the type of a column that it names, or of the table that takes this one's name.
UNTOUCHED = re.compile(r"\s*(repair|drop\s+index)\s")  # of the columns
ALTER, ANOTHER = re.compile(r"\s*alter\s"), re.compile(r"\b(rename|exchange|convert\s+(partition|table))\b")


class Statement(NamedTuple):
    """`db`: the session's database. `text`: in lower case, cut. `ended`: Unix seconds, by the session's clock.
    `escapes`: whether a backslash in its texts is one."""

    db: str
    text: str
    ended: int
    gtid: str
    escapes: bool = True

    def is_of(self, db: str, table: str) -> bool:
        """Whether it may be about the table."""
        return self._names(table) and (self.db == db or self._names(db))

    def redefines(self, db: str, table: str, columns: Sequence[str]) -> bool:
        """Whether these columns may have become others. What is not understood may do anything."""
        return self.is_of(db, table) and not self._leaves(db.casefold(), table.casefold(), columns)

    def _leaves(self, db: str, table: str, columns: Sequence[str]) -> bool:
        if len(self.text) >= LONGEST:
            return False
        change = ddl.change(self.text, self.db.casefold(), self.escapes)
        if change.kind in ("harmless", "truncate"):  # ANALYZE, GRANT, an index, a view, an engine, and their like
            return True
        if change.kind == "unknown":
            return False
        if not {(db, table), (db, ddl.ANY)} & set(change.tables):  # CREATE TABLE another LIKE it, a foreign key to it
            return True
        if UNTOUCHED.match(self.text):
            return True
        return bool(ALTER.match(self.text)) and not ANOTHER.search(self.text) and not any(map(self._names, columns))

    def _names(self, name: str) -> bool:
        """Of a statement that is kept in part: perhaps."""
        name = name.replace("`", "``").casefold()
        if len(self.text) >= LONGEST:
            return True
        return name in self.text and re.search(rf"(?<!\w){re.escape(name)}(?!\w)", self.text) is not None


def statement(db: str, text: str, ended: int, gtid: str, escapes: bool = True) -> Statement:
    return Statement(db, text[:LONGEST].casefold(), ended, gtid, escapes)
