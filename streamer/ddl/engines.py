"""Storage engines whose tables do not hold the rows that a query shows, or that events tell of.

BLACKHOLE and EXAMPLE keep none; of a MERGE table they are those of other tables, and events of them name the one that
was written through; of the others they are on another server, or in a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from streamer.ddl.tokens import Token, Tokens

MERGES = ("MERGE", "MRG_MYISAM")
ELSEWHERE = frozenset(
    (*MERGES, "BLACKHOLE", "EXAMPLE", "FEDERATED", "FEDERATEDX", "SPIDER", "CONNECT", "OQGRAPH", "SPHINX", "SEQUENCE")
)


def keeps_no_rows(tokens: Iterable[Token]) -> bool:
    """Whether ENGINE = one of them, in quotes or not, is among the options of a table or its partitions. `tokens`:
    behind a CREATE TABLE's name, or of an action of ALTER TABLE."""
    said = [token for token in _options(tokens) if token.word != "="]
    return any(one.word == "ENGINE" and of.name.upper() in ELSEWHERE for one, of in pairwise(said))


def _options(tokens: Iterable[Token]) -> Iterator[Token]:
    """What is outside parentheses, which hold columns, keys and expressions, but for those of partitions; a column may
    have any name in a query."""
    depth, partitions = 0, False
    for token in tokens:
        depth += (token.word == "(") - (token.word == ")")
        partitions = partitions or (token.word == "PARTITION" and depth == 0)
        if token.word == "SELECT":
            return
        if depth == 0 or partitions:
            yield token


def members(tokens: Iterable[Token], db: str) -> list[tuple[str, str]]:
    """The tables of a MERGE table's UNION = (a, b). `db`: the session's database."""
    rest = Tokens(tokens, db)
    for token in rest.rest():
        if token.word == "UNION":
            rest.skip("=")
            return _names(rest) if rest.skip("(") else []
    return []


def _names(rest: Tokens) -> list[tuple[str, str]]:
    found = [rest.table()]
    while rest.skip(","):
        found.append(rest.table())
    return found if rest.skip(")") and all(name for _, name in found) else []
