"""The one table whose rows a statement changes, where it is certain that it changes no other's.

In: the statement's tokens. A function that a user made may change any table, and so may a statement that calls one, or
reads a view that does.
"""

from __future__ import annotations

import re

from streamer.ddl.tokens import END, Token, Tokens

_MODIFIERS = ("LOW_PRIORITY", "DELAYED", "HIGH_PRIORITY", "QUICK", "IGNORE", "INTO")
_WORD = re.compile(r"[\w$@\u0080-\U0010ffff]")
# What may stand before a parenthesis and is no user's function: words of the language, and functions of the server's
# own, whose names it prefers to a user's.
_KNOWN = frozenset(
    re.findall(
        r"\w+",
        "AND AS BETWEEN BY CASE DIV ELSE IN KEY LIKE NOT OR ROW SET THEN UPDATE VALUE VALUES WHEN WHERE XOR "
        "ABS CAST CEIL CEILING CHAR CHAR_LENGTH COALESCE CONCAT CONCAT_WS CONVERT CURDATE CURRENT_DATE CURRENT_TIME "
        "CURRENT_TIMESTAMP CURTIME DATE DATE_ADD DATE_FORMAT DATE_SUB DATEDIFF DATETIME DECIMAL FLOOR FROM_UNIXTIME "
        "GREATEST HEX IF IFNULL INET_ATON INET_NTOA INET6_ATON INET6_NTOA JSON_ARRAY JSON_OBJECT LEAST LEFT LENGTH "
        "LOCALTIME LOCALTIMESTAMP LOWER LPAD MD5 MOD NOW NULLIF RAND REPEAT REPLACE REVERSE RIGHT ROUND RPAD SHA1 SHA2 "
        "SUBSTR SUBSTRING SYSDATE TRIM UNHEX UNIX_TIMESTAMP UPPER UTC_DATE UTC_TIME UTC_TIMESTAMP UUID",
    )
)


def target(tokens: Tokens) -> tuple[str, str] | None:
    """Its database and name; None where it is none, or may be several. What follows is left, of an UPDATE behind
    SET."""
    first = tokens.first()
    if first not in ("INSERT", "REPLACE", "UPDATE", "DELETE"):
        return None
    tokens.skip(*_MODIFIERS)
    if first == "DELETE" and not tokens.skip("FROM"):
        return None
    table = tokens.table()
    if first != "INSERT" and first != "REPLACE":
        behind = tokens.take()
        if behind.word != "SET" if first == "UPDATE" else behind is not END and behind.word not in (";", "WHERE"):
            return None
    return table if table[1] else None


def is_plain(tokens: Tokens) -> bool:
    """Whether what is left of it reads no table, and calls no function but the server's own. In: the tokens behind
    `target`."""
    last, before = Token("(", "("), END  # behind a table's name stand its columns
    while (token := tokens.take()) is not END:
        if token.word in ("SELECT", "TABLE", "WITH"):
            return False
        if token.word == "(" and _may_be_a_users(before, last):
            return False
        before, last = last, token
    return True


def _may_be_a_users(before: Token, name: Token) -> bool:
    if before.word == "." or not name.word:  # of a database; in quotes
        return True
    return _WORD.match(name.word) is not None and name.word not in _KNOWN
