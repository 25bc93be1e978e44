"""Query events: what a statement in the binlog means to a transaction.

A row-format binlog holds statements only for BEGIN, COMMIT and their like, and for DDL. A statement that changes
rows in any other way would be lost, so it is told apart here and refused by the reader.
"""

from __future__ import annotations

import json
import re
from enum import Enum
from struct import Struct

from streamer.ddl.tokens import END, Tokens, scan

# thread, seconds it took, length of the database's name, error, length of the status variables
unpack_query = Struct("<IIBHH").unpack_from
FIXED = 13
LONGEST = 4_096  # characters of a statement that its rows carry


class Meaning(Enum):
    BEGIN = "begin"
    COMMIT = "commit"
    ROLLBACK = "rollback"
    SAVEPOINT = "savepoint"
    RELEASED = "savepoint that is given up"
    UNDONE = "rollback to a savepoint"
    XA = "xa"
    ROWS = "change of rows"
    HEARTBEAT = "a managed service's own change"
    DDL = "ddl"


WORDS = {
    b"BEGIN": Meaning.BEGIN,
    b"COMMIT": Meaning.COMMIT,
    b"ROLLBACK": Meaning.ROLLBACK,
    b"SAVEPOINT": Meaning.SAVEPOINT,
    b"RELEASE": Meaning.RELEASED,
    b"XA": Meaning.XA,
    **dict.fromkeys(
        (b"INSERT", b"UPDATE", b"DELETE", b"REPLACE", b"LOAD", b"WITH", b"SELECT", b"CALL", b"DO", b"(", b"VALUES",
         b"EXPLAIN", b"DESCRIBE", b"DESC", b"EXECUTE", b"HANDLER", b"TABLE"), Meaning.ROWS
    ),
    **dict.fromkeys(
        (b"ALTER", b"ANALYZE", b"BACKUP", b"CACHE", b"CHANGE", b"CHECK", b"CHECKSUM", b"CLONE", b"CREATE", b"DROP",
         b"FLUSH", b"GRANT", b"IMPORT", b"INSTALL", b"KILL", b"LOCK", b"OPTIMIZE", b"PURGE", b"RENAME", b"REPAIR",
         b"RESET", b"REVOKE", b"SET", b"SHUTDOWN", b"START", b"STOP", b"TRUNCATE", b"UNINSTALL", b"UNLOCK", b"USE"),
        Meaning.DDL
    ),
}  # fmt: skip
_MODIFIERS = ("LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "QUICK", "IGNORE", "INTO")
# Comments and blanks before the first word; of a versioned comment, /*!80000 ... */ or /*M!100100 ... */, the inside is
# the statement.
_COMMENT = re.compile(rb"(?:\s|/\*(?!M?!).*?\*/|/\*M?!\d*|\*/|#[^\n]*(?:\n|$)|--(?=\s|$)[^\n]*(?:\n|$))*", re.DOTALL)
_WORD = re.compile(rb"[A-Za-z]+|\(")
_UNDONE = re.compile(rb"ROLLBACK\s+(WORK\s+)?TO\b", re.IGNORECASE)


def query(d: bytes, o: int, end: int) -> tuple[int, bytes, bytes]:
    """Thread id, database, statement. Raises struct.error for too few bytes."""
    thread, _, length, _, status = unpack_query(d, o)
    name = o + FIXED + status
    return thread, d[name : name + length], d[name + length + 1 : end]


def meaning(statement: bytes) -> Meaning:
    if statement == b"BEGIN":
        return Meaning.BEGIN
    start = _COMMENT.match(statement)
    begin = start.end() if start else 0
    word = _WORD.match(statement, begin)
    if word is None:  # comments alone do nothing
        return Meaning.DDL if begin == len(statement) else Meaning.ROWS
    first = word[0].upper()
    if first in (b"SET", b"ANALYZE"):
        return _set_or_analyzed(statement)
    found = WORDS.get(first, Meaning.ROWS)  # what begins in no known way could do anything
    if found is Meaning.ROLLBACK and _UNDONE.match(statement, word.start()):
        return Meaning.UNDONE
    return Meaning.HEARTBEAT if found is Meaning.ROWS and _heartbeat(statement) else found


def _heartbeat(statement: bytes) -> bool:
    """Whether its one target is a table of the schema mysql, as managed services write theirs by statements. Such a
    table is no pipeline's, and has no triggers."""
    tokens = Tokens(scan(statement.decode(errors="replace")), "")
    first = tokens.first()
    if first not in ("INSERT", "REPLACE", "UPDATE", "DELETE"):
        return False
    tokens.skip(*_MODIFIERS)
    if first == "DELETE" and not tokens.skip("FROM"):
        return False
    db, table = tokens.table()
    if db.lower() != "mysql" or not table:
        return False
    behind = tokens.take()
    if first == "UPDATE":
        return behind.word == "SET"
    return first != "DELETE" or behind is END or behind.word in (";", "WHERE")


def _set_or_analyzed(statement: bytes) -> Meaning:
    """MariaDB's `SET STATEMENT ... FOR` may stand before any statement, its ANALYZE before one that changes rows."""
    tokens = Tokens(scan(statement.decode(errors="replace")), "")
    first = tokens.first()
    if first != "ANALYZE":
        return WORDS.get(first.encode(), Meaning.ROWS)
    tokens.skip("LOCAL", "NO_WRITE_TO_BINLOG")
    return Meaning.DDL if tokens.skip("TABLE", "TABLES") else Meaning.ROWS


def filled(statement: str, db: str) -> tuple[str, str] | None:
    """The table that a CREATE TABLE makes with rows in it, by a query. Where rows events follow, the server leaves the
    query out. `db`: the session's database."""
    tokens = Tokens(scan(statement), db)
    if tokens.first() != "CREATE":
        return None
    tokens.skip("OR", "REPLACE")
    if not tokens.skip("TABLE"):
        return None
    tokens.skip("IF", "NOT", "EXISTS")
    table = tokens.table()
    return table if _holds_a_query(tokens) else None


def _holds_a_query(tokens: Tokens) -> bool:
    depth, before = 0, ""
    while (token := tokens.take()) is not END:
        word = token.word
        if (word == "SELECT" and before != ".") or (word in ("TABLE", "VALUES") and (depth == 0 or before == "(")):
            return True
        depth += (word == "(") - (word == ")")
        before = word
    return False


def statement_text(statement: bytes) -> bytes:
    """As a JSON string; a long one is cut, since each of its rows carries it."""
    text = statement.decode(errors="replace")
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}... ({len(statement)} bytes)"
    return json.dumps(text, ensure_ascii=False).encode()
