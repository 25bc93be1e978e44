"""Query events: what a statement in the binlog means to a transaction.

A row-format binlog holds statements only for BEGIN, COMMIT and their like, and for DDL. A statement that changes
rows in any other way would be lost, so it is told apart here and refused by the reader.
"""

from __future__ import annotations

import json
import re
from enum import Enum
from struct import Struct

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
    DDL = "ddl"


WORDS = {
    b"BEGIN": Meaning.BEGIN,
    b"COMMIT": Meaning.COMMIT,
    b"ROLLBACK": Meaning.ROLLBACK,
    b"SAVEPOINT": Meaning.SAVEPOINT,
    b"RELEASE": Meaning.RELEASED,
    b"XA": Meaning.XA,
    **dict.fromkeys(
        (b"INSERT", b"UPDATE", b"DELETE", b"REPLACE", b"LOAD", b"WITH", b"SELECT", b"CALL", b"DO"), Meaning.ROWS
    ),
}
# Managed services write their own heartbeats as statements.
HEARTBEAT = re.compile(rb"\bmysql`?\.`?(rds_|ha_|heartbeat\b)", re.IGNORECASE)
# Comments and blanks before the first word; of a versioned comment, /*!80000 ... */, the inside is the statement.
_COMMENT = re.compile(rb"(?:\s|/\*(?!!).*?\*/|/\*!\d*|#[^\n]*(?:\n|$)|--[ \t][^\n]*(?:\n|$))*", re.DOTALL)
_WORD = re.compile(rb"[A-Za-z]+")
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
    word = _WORD.match(statement, start.end() if start else 0)
    if word is None:
        return Meaning.DDL
    found = WORDS.get(word[0].upper(), Meaning.DDL)
    if found is Meaning.ROLLBACK and _UNDONE.match(statement, word.start()):
        return Meaning.UNDONE
    return found


def statement_text(statement: bytes) -> bytes:
    """As a JSON string; a long one is cut, since each of its rows carries it."""
    text = statement.decode(errors="replace")
    if len(text) > LONGEST:
        text = f"{text[:LONGEST]}... ({len(statement)} bytes)"
    return json.dumps(text, ensure_ascii=False).encode()
