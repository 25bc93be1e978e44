"""Which columns an ALTER TABLE defines anew, where it certainly does nothing else. Pure.

In: the statement's whole text, of a record of the DDL topic. What may stand in it is listed, so that a word which does
more than the table's shape shows (AUTO_INCREMENT numbers rows, an expression computes them, FLOAT(7,2) rounds) is never
passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

# Read from left to right, so that no quote in a comment, and no comment's sign in a text, hides what follows. Where a
# text with a backslash ends, the session says; a comment with ! or + is part of the statement: both are in doubt.
TEXT = r"""'(?:[^'\\]|'')*'|"(?:[^"\\]|"")*"|`(?:[^`]|``)+`"""
WORD = r"[\w$\u0080-\U0010ffff]+"  # beyond ASCII any character, as in streamer/ddl/tokens.py
TOKEN = re.compile(rf"[ \t\n\r\f\v]+|/\*(?![!+M]).*?\*/|({TEXT}|{WORD}|-(?!-)|[(),.=+])", re.DOTALL)
HOW = {"ALGORITHM": ("INPLACE", "INSTANT", "NOCOPY", "DEFAULT"), "LOCK": ("NONE", "SHARED", "EXCLUSIVE", "DEFAULT")}
ROUNDS = ("FLOAT", "DOUBLE", "PRECISION", "REAL")  # with digits behind them
NAMED = ("COLLATE", "CHARSET", "AFTER")  # a name follows
PLAIN = (
    "BIT BOOL BOOLEAN TINYINT SMALLINT MEDIUMINT INT INTEGER BIGINT DECIMAL DEC NUMERIC FIXED CHAR CHARACTER VARYING "
    "VARCHAR BINARY VARBINARY TINYBLOB BLOB MEDIUMBLOB LONGBLOB TINYTEXT TEXT MEDIUMTEXT LONGTEXT ENUM SET DATE TIME "
    "DATETIME TIMESTAMP YEAR JSON UNSIGNED SIGNED ZEROFILL NULL NOT DEFAULT TRUE FALSE CURRENT_TIMESTAMP NOW LOCALTIME "
    "LOCALTIMESTAMP ON UPDATE COMMENT FIRST VISIBLE INVISIBLE B X N"
)
DEFINES = {*PLAIN.split(), *ROUNDS, *NAMED}


def defined(statement: str) -> tuple[str, ...]:
    """The columns' names, in small letters; none in doubt."""
    rest = _past(_tokens(statement.rstrip("; \t\n")), "ALTER", "ONLINE")
    if len(rest) < 2 or rest[0].upper() != "TABLE":
        return ()
    rest = _past(rest[1:], "IF", "EXISTS")
    found = [_column(action) for action in _actions(rest[3:] if rest[1:2] == ["."] else rest[1:])]
    return () if None in found else tuple(name for name in found if name)


def _tokens(statement: str) -> list[str]:
    """None where one of them is not known."""
    found, at = list[str](), 0
    while at < len(statement):
        if (match := TOKEN.match(statement, at)) is None:
            return []
        at = match.end()
        found += filter(None, [match[1]])
    return found


def _past(tokens: Sequence[str], *words: str) -> list[str]:
    """Behind those of the words that come next."""
    at = 0
    for word in words:
        at += tokens[at : at + 1] != [] and tokens[at].upper() == word
    return list(tokens[at:])


def _actions(tokens: Sequence[str]) -> Iterator[list[str]]:
    depth, action = 0, list[str]()
    for token in tokens:
        depth += (token == "(") - (token == ")")
        if token == "," and depth == 0:
            yield action
            action = []
        else:
            action.append(token)
    yield action


def _column(action: Sequence[str]) -> str | None:
    """The name of the one that it defines, under the name that it has; empty where it says how the table is rebuilt;
    None in doubt."""
    first = action[0].upper() if action else ""
    if first in HOW:
        how = _past(action[1:], "=")
        return "" if len(how) == 1 and how[0].upper() in HOW[first] else None
    rest = _past(action[1:], "COLUMN", "IF", "EXISTS")
    count = {"MODIFY": 1, "CHANGE": 2}.get(first, 0)
    names = {_name(token) for token in rest[:count]}
    return names.pop() if len(names) == 1 and _leaves_values(rest[count:]) else None


def _name(token: str) -> str:
    quote = token[0]
    return (token[1:-1].replace(quote * 2, quote) if quote in "`\"'" else token).lower()


def _leaves_values(definition: Sequence[str]) -> bool:
    """But for those that another type, another size or NOT NULL changes, which the shape shows."""
    words = ["", "", *(token.upper() for token in definition), ""]
    around = zip(words, words[1:], words[2:], words[3:], strict=False)
    return bool(definition) and all(_is_known(*three) for three in around)


def _is_known(before: str, last: str, word: str, following: str) -> bool:
    """Of a word with the two before it and the next one."""
    if last in NAMED or (last == "SET" and before in ("CHARACTER", "CHAR")):
        return True
    if word in ROUNDS and following == "(":
        return False
    return word in DEFINES or word[0] in "0123456789'\"(),.=+-"
