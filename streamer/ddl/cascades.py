"""Foreign keys by which a server changes rows of their table, the child, when rows of the parent go or change.

Servers that leave that to the engine write no row of it into the binlog. In: the statement's text. It never raises.
"""

from __future__ import annotations

import re

from streamer.ddl.tokens import Token, Tokens, scan

REFERS = re.compile(r"\breferences\b", re.IGNORECASE)
RULES = (["CASCADE"], ["SET", "NULL"], ["SET", "DEFAULT"])


def gives_cascade(statement: str, escapes: bool = True, inline: bool = True) -> bool:
    """Whether a CREATE TABLE or ALTER TABLE gives its table such a key. `escapes`: whether a backslash is one there.
    `inline`: whether REFERENCES behind a column makes a key on that server; before MySQL 9.0 it does nothing."""
    if not REFERS.search(statement):
        return False
    tokens = Tokens(scan(statement, escapes), "")
    if tokens.first() not in ("CREATE", "ALTER"):
        return False
    depth, foreign, refers = 0, False, -1  # where, in parentheses, the last REFERENCES stands
    before: list[str] = []
    for token in tokens.rest():
        depth += _deeper(token)
        if token.word == "," and depth <= max(refers, 0):
            refers, foreign = -1, False
        foreign = foreign or token.word == "FOREIGN"
        if token.word == "REFERENCES":
            refers = depth if foreign or inline else -1
        before = [*before[-3:], token.word]
        if refers >= 0 and _is_rule(before):
            return True
    return False


def makes_where_none_is(statement: str, escapes: bool = True) -> bool:
    """CREATE TABLE IF NOT EXISTS, which is logged where there is one, too."""
    tokens = Tokens(scan(statement, escapes), "")
    return tokens.first() == "CREATE" and tokens.skip("TABLE") and tokens.skip("IF")


def _deeper(token: Token) -> int:
    return (token.word == "(") - (token.word == ")")


def _is_rule(words: list[str]) -> bool:
    """ON DELETE CASCADE, and its like, as the last words."""
    for rule in RULES:
        on = words[-len(rule) - 2 : -len(rule)]
        if words[-len(rule) :] == rule and on in (["ON", "DELETE"], ["ON", "UPDATE"]):
            return True
    return False
