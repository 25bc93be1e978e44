"""What a DDL statement does to rows that no row event tells of: its kind, and the tables it names.

In: the statement's text, as the binlog has it, and the session's database. It never raises: what is not understood is a
change of the kind `unknown`. The row events' own metadata is the truth about columns; this is advice.

No SQL parser: sqlglot 30.30 for one leaves RENAME TABLE, MariaDB's SET STATEMENT and most partition DDL unparsed, fails
at ALTER TABLE ... DROP PARTITION, and takes what is inside a versioned comment for no statement at all. All of these
change rows; and what is asked here, the kind and the tables, is in a statement's first words.
"""

from __future__ import annotations

from typing import NamedTuple

from streamer.ddl.actions import CHANGES_ROWS, KINDS, Kind, action
from streamer.ddl.engines import keeps_no_rows, members
from streamer.ddl.tokens import END, Tokens, scan, words

__all__ = ["CHANGES_ROWS", "KINDS", "Change", "Kind", "Table", "action", "change"]
LONGEST = 100_000  # characters of a statement that are read
NAMES = ("DROP", "RENAME", "REPAIR")  # what these are of they name one behind the other
ANY = "*"  # every table of a database
Table = tuple[str, str]
# What stands behind CREATE, DROP and ALTER and holds no rows.
NO_ROWS = words(
    "DATABASE SCHEMA VIEW INDEX UNIQUE FULLTEXT SPATIAL TRIGGER PROCEDURE FUNCTION AGGREGATE EVENT USER ROLE SERVER "
    "TABLESPACE UNDO LOGFILE RESOURCE VECTOR INSTANCE DEFINER SQL ALGORITHM TEMPORARY PREPARE LIBRARY SEQUENCE PACKAGE"
)
OF_A_TABLE = words("INDEX UNIQUE FULLTEXT SPATIAL VECTOR TRIGGER")
HARMLESS = words("GRANT REVOKE SET ANALYZE OPTIMIZE CHECK FLUSH INSTALL UNINSTALL")
# What names partitions, or columns, up to the statement's end.
LISTS = {(word, "PARTITION") for word in words("REORGANIZE REBUILD ANALYZE OPTIMIZE CHECK REPAIR")} | {("ORDER", "BY")}


class Change(NamedTuple):
    """`tables`: those that the statement names, `ANY` for all of a database; none where they cannot be told."""

    kind: Kind
    tables: tuple[Table, ...]


NOTHING = Change("harmless", ())


def change(statement: str, db: str, escapes: bool = True) -> Change:
    """`db`: the session's database, which unqualified names are of. `escapes`: whether a backslash is one there. Of a
    very long statement the beginning alone is read, but where it is a list of names; of an ALTER TABLE, what follows is
    not understood then."""
    tokens = Tokens(scan(statement[:LONGEST], escapes), db)
    first = tokens.first()
    if first in NAMES and len(statement) > LONGEST:
        tokens = Tokens(scan(statement, escapes), db)
        tokens.first()
    if first == "TRUNCATE":
        tokens.skip("TABLE")
        return _found("truncate", [tokens.table()])
    if first == "DELETE":  # a server's own, of all rows
        tokens.skip("FROM")
        table = tokens.table()
        return _found("truncate", [table]) if tokens.take() is END else Change("unknown", ())
    if first == "RENAME":
        return NOTHING if tokens.skip("USER") else _rename(tokens)
    if first == "REPAIR":  # what is broken of a MyISAM, Aria, CSV or ARCHIVE table goes, rows with it; or of a view
        tokens.skip("LOCAL", "NO_WRITE_TO_BINLOG")
        return _each("alter", tokens) if tokens.skip("TABLE", "TABLES") else NOTHING
    if first not in ("DROP", "ALTER", "CREATE"):
        return NOTHING if first in HARMLESS else Change("unknown", ())
    tokens.skip("ONLINE", "OR")
    ignores, replaces = tokens.skip("IGNORE"), tokens.skip("REPLACE")
    if tokens.skip("TABLE", "TABLES"):
        if first == "ALTER":
            found = _alter(tokens, ignores)
            return found._replace(kind="unknown") if len(statement) > LONGEST else found
        return _each("drop", tokens) if first == "DROP" or replaces else _create(tokens)
    if replaces and tokens.skip("SEQUENCE"):  # the table of its name goes
        return _each("drop", tokens)
    if (first != "CREATE" or replaces) and tokens.skip("DATABASE", "SCHEMA"):
        return _upgraded(tokens) if first == "ALTER" else _database(tokens)
    tokens.skip("JSON", "RELATIONAL", "DUALITY")  # a view
    second = tokens.take().word
    if (first, second) == ("DROP", "INDEX"):
        return _index(tokens, _is_primary(tokens))
    return _index(tokens) if second in OF_A_TABLE else NOTHING if second in NO_ROWS else Change("unknown", ())


def _found(kind: Kind, tables: list[Table]) -> Change:
    return Change(kind, tuple(tables)) if all(db and table for db, table in tables) else Change("unknown", ())


def _create(tokens: Tokens) -> Change:
    tokens.skip("IF", "EXISTS", "NOT")
    table = tokens.table()
    rest = list(tokens.rest())
    return _found("alter" if keeps_no_rows(rest) else "shape", [table, *members(rest, tokens.db)])


def _index(tokens: Tokens, primary: bool = False) -> Change:
    """CREATE or DROP INDEX name ON table, or a trigger's. `primary`: the key by which rows are known goes."""
    while (token := tokens.take()) is not END:
        if token.word == "ON":
            table = tokens.table()
            return Change("alter" if primary else "harmless", (table,)) if all(table) else NOTHING
    return NOTHING


def _is_primary(tokens: Tokens) -> bool:
    tokens.skip("IF", "EXISTS")
    return tokens.take().name.upper() == "PRIMARY"


def _database(tokens: Tokens) -> Change:
    tokens.skip("IF", "EXISTS", "NOT")
    return _found("drop", [(tokens.take().name, ANY)])


def _upgraded(tokens: Tokens) -> Change:
    """MariaDB's ALTER DATABASE `#mysql50#a-b` UPGRADE DATA DIRECTORY NAME: it is called a-b from there on."""
    name = tokens.take().name
    renames = tokens.skip("UPGRADE")
    return _found("rename", [(name, ANY), (name.removeprefix("#mysql50#"), ANY)]) if renames else NOTHING


def _each(kind: Kind, tokens: Tokens) -> Change:
    """Of a list of tables."""
    tokens.skip("IF", "EXISTS", "NOT")
    tables = [tokens.table()]
    while tokens.skip(","):
        tables.append(tokens.table())
    return _found(kind, tables)


def _rename(tokens: Tokens) -> Change:
    if not tokens.skip("TABLE", "TABLES"):
        return Change("unknown", ())
    tables: list[Table] = []
    while not tables or tokens.skip("TO", ","):
        tokens.skip("IF", "EXISTS")
        tables.append(tokens.table())
        tokens.waits()
    return _found("rename", tables)


def _alter(tokens: Tokens, ignores: bool) -> Change:
    """`ignores`: MariaDB's ALTER IGNORE, which deletes rows that a new unique key forbids."""
    tokens.skip("IF", "EXISTS")
    tables = [tokens.table()]
    tokens.waits()
    merged: list[Table] = []
    kinds: set[Kind] = {"alter"} if ignores else set()
    for part in tokens.parts():
        said = [token.word for token in part]
        merged += members(part, tokens.db)
        kind = action(part)
        kinds.add(kind)
        if kind == "rename":  # to [db.]name
            rest = Tokens(part[1:], tokens.db)
            rest.skip("TO", "AS", "=")
            tables.append(rest.table())
        elif said[:1] in (["EXCHANGE"], ["CONVERT"]) and "TABLE" in said:  # partition p with, or to, table [db.]name
            tables.append(Tokens(part[said.index("TABLE") + 1 :], tokens.db).table())
        if tuple(said[:2]) in LISTS:
            break
    kind = min(kinds, key=KINDS.index)
    return _found(kind, tables + merged if kind == "alter" else tables)
