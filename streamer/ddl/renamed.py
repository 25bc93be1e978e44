"""Which columns an ALTER TABLE gives other names, and which it drops, and whether it does anything else to columns.

In: the statement's text. It never raises; what is not understood counts as something else. The lake then knows a column
by its new name; that the values are the same it asks of the tables' shapes, which the rows' own metadata tells.
"""

from __future__ import annotations

from typing import NamedTuple

from streamer.ddl import statement as ddl
from streamer.ddl.actions import INDEXES
from streamer.ddl.cascades import gives_cascade
from streamer.ddl.tokens import Token, Tokens, scan

# With such a word behind CHANGE a value may be another: it is computed, numbered anew, or rounded as no shape tells.
MORE = frozenset(("AS", "GENERATED", "AUTO_INCREMENT", "SERIAL", "FLOAT", "FLOAT4", "FLOAT8", "DOUBLE", "REAL"))

# What can be dropped beside columns; two of the words are columns' names, too.
NO_COLUMNS = INDEXES | {"CONSTRAINT", "PRIMARY", "PARTITION"}
PAIRS = (["SYSTEM", "VERSIONING"], ["PERIOD", "FOR"])


class Renamed(NamedTuple):
    """`columns`: pairs of the old name and the new one, as the statement has them; `alone`: nothing else is done to
    columns. `dropped`: names of those that go, which the statement may give again."""

    columns: tuple[tuple[str, str], ...] = ()
    alone: bool = False
    dropped: tuple[str, ...] = ()


def renamed(statement: str, db: str, escapes: bool = True) -> Renamed:
    """`db`, `escapes`: as of streamer/ddl/statement.py."""
    tokens = Tokens(scan(statement[: ddl.LONGEST], escapes), db)
    if tokens.first() != "ALTER":
        return Renamed()
    tokens.skip("ONLINE")
    alone = not tokens.skip("IGNORE") and len(statement) <= ddl.LONGEST
    if not tokens.skip("TABLE", "TABLES"):
        return Renamed()
    tokens.skip("IF", "EXISTS")
    tokens.table()
    tokens.waits()
    found, dropped = [], []
    for part in tokens.parts():
        words = [token.word for token in part]
        if pair := _pair(part, words):
            found.append(pair)
            alone = alone and not MORE & set(words)
        else:
            dropped += _dropped(part, words)
            alone = alone and ddl.action(part) == "harmless"
    alone = alone and bool(found) and not gives_cascade(statement, escapes)
    return Renamed(tuple(found), alone, tuple(dropped))


def _dropped(part: list[Token], words: list[str]) -> list[str]:
    if words[:1] != ["DROP"] or NO_COLUMNS & set(words[1:2]) or words[1:3] in PAIRS:
        return []
    rest = Tokens(part[1:], "")
    rest.skip("COLUMN", "IF", "EXISTS")
    return [rest.take().name]


def _pair(part: list[Token], words: list[str]) -> tuple[str, str] | None:
    """RENAME COLUMN a TO b, or CHANGE a b definition."""
    renames = words[:2] == ["RENAME", "COLUMN"]
    if not renames and words[:1] != ["CHANGE"]:
        return None
    rest = Tokens(part[1:], "")
    rest.skip("COLUMN", "IF", "EXISTS")
    old = rest.take().name
    if renames:
        rest.skip("TO")
    new = rest.take().name
    return (old, new) if old and new and old.lower() != new.lower() else None
