"""Which tables a statement brings into a pipeline with rows that nobody streamed.

A table that gets its name by a RENAME has the rows that it had before under the other one. One that is made has none,
or its rows come behind it as row events; from then on nothing of it is missing.
"""

from __future__ import annotations

from streamer.ddl.statement import LONGEST, Change, Table
from streamer.ddl.tokens import Tokens, scan


def joining(change: Change, statement: str, escapes: bool = True) -> dict[Table, bool]:
    """Of each table that it concerns whether there may be such rows behind it; `ANY` for all of a database. `change`:
    what is known of the statement. `escapes`: whether a backslash is one there."""
    if change.kind == "rename":  # from, to, and so on, one behind the other
        return {table: at % 2 == 1 for at, table in enumerate(change.tables)}
    if change.kind == "drop" or (change.kind == "shape" and _makes(statement, escapes)):
        return dict.fromkeys(change.tables, False)
    return {}


def _makes(statement: str, escapes: bool) -> bool:
    """Whether it makes a table, and not only where there is none: that is logged where there is one, too."""
    tokens = Tokens(scan(statement[:LONGEST], escapes), "")
    return tokens.first() == "CREATE" and tokens.skip("TABLE") and not tokens.skip("IF")
