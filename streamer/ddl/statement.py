"""What a DDL statement does to rows that no row event tells of: its kind, and the tables it names.

In: the statement's text, as the binlog has it, and the session's database. It never raises: what is not understood is a
change of the kind `unknown`. The row events' own metadata is the truth about columns; this is advice.

No SQL parser: sqlglot 30.30 for one leaves RENAME TABLE, MariaDB's SET STATEMENT and most partition DDL unparsed, fails
at ALTER TABLE ... DROP PARTITION, and takes what is inside a versioned comment for no statement at all. All of these
change rows; and what is asked here, the kind and the tables, is in a statement's first words.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Literal, NamedTuple

from streamer.ddl.tokens import END, Token, Tokens, scan

Kind = Literal["truncate", "drop", "rename", "partition", "alter", "unknown", "shape", "harmless"]
# What changes rows, or may; then what changes a table's shape alone, then what does neither.
CHANGES_ROWS: tuple[Kind, ...] = ("truncate", "drop", "rename", "partition", "alter", "unknown")
KINDS: tuple[Kind, ...] = (*CHANGES_ROWS, "shape", "harmless")
LONGEST = 100_000  # characters of a statement that are read
NAMES = ("DROP", "RENAME")  # what these are of they name one behind the other
ANY = "*"  # every table of a database
Table = tuple[str, str]


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# What stands behind CREATE, DROP and ALTER and holds no rows.
NO_ROWS = _words(
    "DATABASE SCHEMA VIEW INDEX UNIQUE FULLTEXT SPATIAL TRIGGER PROCEDURE FUNCTION AGGREGATE EVENT USER ROLE SERVER "
    "TABLESPACE UNDO LOGFILE RESOURCE VECTOR INSTANCE DEFINER SQL ALGORITHM TEMPORARY PREPARE LIBRARY SEQUENCE PACKAGE"
)
OF_A_TABLE = _words("INDEX UNIQUE FULLTEXT SPATIAL VECTOR TRIGGER")
HARMLESS = _words("GRANT REVOKE SET ANALYZE OPTIMIZE REPAIR CHECK FLUSH INSTALL UNINSTALL")
# Actions of ALTER TABLE that leave the rows' values as they are, by their first word.
ACTIONS = _words(
    "ALGORITHM ALTER ANALYZE AUTOEXTEND_SIZE AUTO_INCREMENT AVG_ROW_LENGTH CHARACTER CHARSET CHECK CHECKSUM COALESCE "
    "COLLATE COMMENT COMPRESSION CONNECTION DATA DEFAULT DELAY_KEY_WRITE DISABLE ENABLE ENCRYPTED ENCRYPTION "
    "ENCRYPTION_KEY_ID ENGINE ENGINE_ATTRIBUTE FORCE INDEX INSERT_METHOD KEY_BLOCK_SIZE LOCK MAX_ROWS MIN_ROWS "
    "OPTIMIZE ORDER PACK_KEYS PAGE_CHECKSUM PAGE_COMPRESSED PAGE_COMPRESSION_LEVEL PARTITION REBUILD REMOVE REORGANIZE "
    "REPAIR ROW_FORMAT SECONDARY_ENGINE SECONDARY_ENGINE_ATTRIBUTE SECONDARY_LOAD SECONDARY_UNLOAD STATS_AUTO_RECALC "
    "STATS_PERSISTENT STATS_SAMPLE_PAGES TABLESPACE TABLE_CHECKSUM TRANSACTIONAL VALIDATION WITH WITHOUT"
)
CHANGING = _words("MODIFY CHANGE CONVERT IMPORT DISCARD")
INDEXES = _words("INDEX KEY FULLTEXT SPATIAL UNIQUE FOREIGN CHECK")
# What names partitions, or columns, up to the statement's end.
LISTS = {(word, "PARTITION") for word in _words("REORGANIZE REBUILD ANALYZE OPTIMIZE CHECK REPAIR")} | {("ORDER", "BY")}
# A new column with one of these words is not simply NULL in the rows that are there.
FILLED = _words("NOT GENERATED AS AUTO_INCREMENT PRIMARY KEY SERIAL")
UNLESS_THERE = ["IF", "NOT", "EXISTS"]


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
    if first not in ("DROP", "ALTER", "CREATE"):
        return NOTHING if first in HARMLESS else Change("unknown", ())
    tokens.skip("ONLINE", "OR")
    ignores, replaces = tokens.skip("IGNORE"), tokens.skip("REPLACE")
    if tokens.skip("TABLE", "TABLES"):
        if first == "ALTER":
            found = _alter(tokens, ignores)
            return found._replace(kind="unknown") if len(statement) > LONGEST else found
        return _drop(tokens) if first == "DROP" or replaces else _create(tokens)
    if (first == "DROP" or replaces) and tokens.skip("DATABASE", "SCHEMA"):
        tokens.skip("IF", "EXISTS", "NOT")
        return _found("drop", [(tokens.take().name, ANY)])
    tokens.skip("JSON", "RELATIONAL", "DUALITY")  # a view
    second = tokens.take().word
    return _index(tokens) if second in OF_A_TABLE else NOTHING if second in NO_ROWS else Change("unknown", ())


def _found(kind: Kind, tables: list[Table]) -> Change:
    return Change(kind, tuple(tables)) if all(db and table for db, table in tables) else Change("unknown", ())


def _create(tokens: Tokens) -> Change:
    tokens.skip("IF", "EXISTS", "NOT")
    return _found("shape", [tokens.table()])


def _index(tokens: Tokens) -> Change:
    """CREATE or DROP INDEX name ON table, or a trigger's."""
    while (token := tokens.take()) is not END:
        if token.word == "ON":
            table = tokens.table()
            return Change("harmless", (table,)) if all(table) else NOTHING
    return NOTHING


def _drop(tokens: Tokens) -> Change:
    tokens.skip("IF", "EXISTS", "NOT")
    tables = [tokens.table()]
    while tokens.skip(","):
        tables.append(tokens.table())
    return _found("drop", tables)


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
    kinds: set[Kind] = {"alter"} if ignores else set()
    for part in tokens.parts():
        words = [token.word for token in part]
        kind = "alter" if _empties(part) or _drops_key(part) else action(words)
        kinds.add(kind)
        if kind == "rename":  # to [db.]name
            rest = Tokens(part[1:], tables[0][0])
            rest.skip("TO", "AS", "=")
            tables.append(rest.table())
        elif words[0:1] in (["EXCHANGE"], ["CONVERT"]) and "TABLE" in words:  # partition p with, or to, table [db.]name
            tables.append(Tokens(part[words.index("TABLE") + 1 :], tables[0][0]).table())
        if tuple(words[:2]) in LISTS:
            break
    return _found(min(kinds, key=KINDS.index), tables)


def _empties(part: list[Token]) -> bool:
    """ENGINE = BLACKHOLE, in quotes or not, among whatever options: no row is left."""
    said = [token for token in part if token.word != "="]
    return any(one.word == "ENGINE" and of.name.upper() == "BLACKHOLE" for one, of in pairwise(said))


def _drops_key(part: list[Token]) -> bool:
    """DROP CONSTRAINT `PRIMARY`."""
    words = [token.word for token in part[:2]]
    return words == ["DROP", "CONSTRAINT"] and part[2:3] != [] and part[2].name.upper() == "PRIMARY"


def action(words: list[str]) -> Kind:
    """The kind of one action of ALTER TABLE."""
    first, second, *_ = (*words, "", "")
    if second == "PARTITION" and first in ("DROP", "TRUNCATE", "EXCHANGE", "CONVERT"):
        return "partition"
    if (first, second) == ("CONVERT", "TABLE"):  # to partition p
        return "partition"
    if first == "RENAME":
        return "alter" if second == "COLUMN" else "harmless" if second in ("INDEX", "KEY") else "rename"
    if first in CHANGING:
        return "alter"
    if first == "DROP":
        return "harmless" if second in INDEXES or second == "CONSTRAINT" else "alter"
    if first == "ADD":
        return _added(second, words)
    return "harmless" if first in ACTIONS or not words else "unknown"


def _added(second: str, words: list[str]) -> Kind:
    if second == "CONSTRAINT":
        return "alter" if "PRIMARY" in words else "harmless"
    if second in INDEXES or second == "PARTITION":
        return "harmless"
    if second == "VECTOR" and words[2] in ("INDEX", "KEY"):  # by itself, a column's name
        return "harmless"
    if words[1:4] == UNLESS_THERE or words[2:5] == UNLESS_THERE:  # ADD [COLUMN] IF NOT EXISTS column
        words = words[words.index("EXISTS") + 1 :]
    defaults = any(word == "DEFAULT" and after != "NULL" for word, after in zip(words, [*words[1:], ""], strict=True))
    return "alter" if defaults or FILLED & set(words) or _filled_with_now(words) else "shape"


def _filled_with_now(words: list[str]) -> bool:
    """A new TIMESTAMP that does not say NULL: with explicit_defaults_for_timestamp=OFF it is the time of the ALTER."""
    columns = " ".join(words).split(",")
    return any("TIMESTAMP" in column.split() and "NULL" not in column.split() for column in columns)
