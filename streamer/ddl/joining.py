"""Which tables a statement brings into a pipeline with rows that nobody streamed.

A table that gets its name by a RENAME has the rows that it had before under the other one. One that is made has none,
or its rows come behind it as row events; from then on nothing of it is missing.
"""

from __future__ import annotations

from itertools import pairwise

from streamer.ddl.statement import ANY, LONGEST, Change, Table
from streamer.ddl.tokens import Tokens, scan


def joining(change: Change, statement: str, escapes: bool = True) -> dict[Table, bool]:
    """Of each table that it concerns whether there may be such rows behind it; `ANY` for all of a database. `change`:
    what is known of the statement. `escapes`: whether a backslash is one there."""
    if change.kind == "rename":  # from, to, and so on, one behind the other
        named = {table: at % 2 == 1 for at, table in enumerate(change.tables)}
        return {table: joins for table, joins in named.items() if not joins or table[1] != ANY}
    if change.kind == "drop":
        return dict.fromkeys(change.tables, False)
    if change.kind in ("shape", "alter") and _makes(statement, escapes):  # the others are those of a MERGE table
        return {change.tables[0]: False}
    return _converted(change, statement, escapes) if change.kind == "partition" else {}


def _converted(change: Change, statement: str, escapes: bool) -> dict[Table, bool]:
    """MariaDB's CONVERT PARTITION p TO TABLE t, and CONVERT TABLE t TO PARTITION, by which it is no more. The last one
    that is named is that table."""
    actions = {("CONVERT", "PARTITION"): True, ("CONVERT", "TABLE"): False}
    words = [token.word for token in scan(statement[:LONGEST], escapes)]
    found = [actions[pair] for pair in pairwise(words) if pair in actions]
    return {change.tables[-1]: found[0]} if found else {}


def _makes(statement: str, escapes: bool) -> bool:
    """Whether it makes a table, and not only where there is none: that is logged where there is one, too."""
    tokens = Tokens(scan(statement[:LONGEST], escapes), "")
    return tokens.first() == "CREATE" and tokens.skip("TABLE") and not tokens.skip("IF")
