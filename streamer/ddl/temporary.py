"""Changes of temporary tables, which a session sees in place of the real ones of their names: TRUNCATE and ALTER,
MariaDB's RENAME, and those of rows.

In row format servers do not log them. In sessions with another format they do, and mark them as of a thread. MariaDB
marks these alone; MySQL marks within a CALL also what comes behind the use of a temporary table. There, the tables are
known by the statements that made them: a session that has temporary tables cannot change its format. Behind a restart
they are those of the checkpoint. MariaDB logs a RENAME of them in row format, too, unmarked and without what made them:
it looks as that of a real table, and is told as one.
"""

from __future__ import annotations

from collections.abc import Iterable

from streamer.ddl import statement as ddl
from streamer.ddl.target import is_plain, target
from streamer.ddl.tokens import Tokens, scan

Name = tuple[int, str, str]  # the thread, the database, the table


class TemporaryTables:
    """Those of a binlog's sessions, as far as it was read. `lower_case`: whether the server takes names that differ in
    case alone for one; as long as nobody says that it does not."""

    def __init__(self, known: Iterable[Name] = ()) -> None:
        self._known: set[Name] = set(known)
        self.lower_case = True

    def all(self) -> tuple[Name, ...]:
        return tuple(sorted(self._known))

    def clear(self) -> None:
        """The server was started: they are gone."""
        self._known.clear()

    def changed(self, thread: int, db: str, text: str, exact: bool, escapes: bool = True) -> bool:
        """Whether a statement that is marked as of a thread changes a temporary table, and none of a pipeline's.
        `exact`: whether the server marks no other TRUNCATE and ALTER TABLE. `escapes`: whether a backslash is one."""
        tokens = Tokens(scan(text[: ddl.LONGEST], escapes), db)
        first = tokens.first()
        tokens.skip("OR", "REPLACE")
        if first in ("CREATE", "DROP") and tokens.skip("TEMPORARY"):
            self._note(thread, tokens, made=first == "CREATE")
            return False
        change = ddl.change(text, db, escapes)
        names = [self._name(thread, its, table) for its, table in change.tables]
        if first not in ("TRUNCATE", "ALTER") or not names:
            return False
        if names[0] in self._known:
            if names[1:] and change.kind != "alter":  # its new name
                self._known.remove(names[0])
                self._known.update(names[1:])
            return True
        return exact

    def renamed(self, thread: int, db: str, text: str, escapes: bool = True) -> bool:
        """Whether MariaDB's RENAME TABLE, which it marks in no way, is of temporary tables alone; MySQL's is of real
        ones. One that is of both is told as a whole."""
        if not self._known:
            return False
        change = ddl.change(text, db, escapes)
        if change.kind != "rename":
            return False
        names = [self._name(thread, its, table) for its, table in change.tables]
        real = 0
        for old, new in zip(names[::2], names[1::2], strict=False):
            if old in self._known:
                self._known.remove(old)
                self._known.add(new)
            else:
                real += 1
        return real == 0

    def takes(self, thread: int, db: str, text: str, escapes: bool = True) -> bool:
        """Whether a statement that is marked as of a thread changes rows of a temporary table, and certainly of no
        other one. Of a long one that is not asked."""
        if not self._known or len(text) > ddl.LONGEST:
            return False
        tokens = Tokens(scan(text, escapes), db)
        found = target(tokens)
        known = found is not None and self._name(thread, *found) in self._known
        return known and is_plain(tokens)

    def _name(self, thread: int, db: str, table: str) -> Name:
        return (thread, db.lower(), table.lower()) if self.lower_case else (thread, db, table)

    def _note(self, thread: int, tokens: Tokens, made: bool) -> None:
        tokens.skip("TABLE", "TABLES")
        while True:
            tokens.skip("IF", "NOT", "EXISTS")
            name = self._name(thread, *tokens.table())
            if made:
                self._known.add(name)
                return
            self._known.discard(name)
            if not tokens.skip(","):
                return
