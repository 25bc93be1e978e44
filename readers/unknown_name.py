"""What a person is told of a name that the lake does not have. DuckDB would suggest of its own tables, since one
of the lake is loaded only for a statement that names it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping

SHOWN = 20  # tables
UNKNOWN = re.compile(r'^Catalog Error: (?P<kind>Table|Table Function) with name "?(?P<name>.+?)"? does not exist')


def told(message: str, tables: Iterable[str], parts: Iterable[str], refused: Mapping[str, str]) -> str:
    """DuckDB's message, or where it is of a name that no table has, one that says which ones there are. `tables`: as
    `db.table`; `parts`: the names of their pasts. `refused`: why the lake does not have these names, in lower case."""
    if not (found := UNKNOWN.match(message)):
        return message
    name, tables = found["name"], sorted(tables)
    if name.lower() in refused:
        return refused[name.lower()]
    known = {
        **{table.split(".", 1)[-1].lower(): table for table in tables},
        **{table.lower(): table for table in tables},
    }
    known |= {part.lower(): part for part in parts}
    close = [known[one] for one in difflib.get_close_matches(name.lower(), known, 3)]
    hint = f"Did you mean {' or '.join(dict.fromkeys(close))}? " if close else ""
    more = f" and {len(tables) - SHOWN} more" if len(tables) > SHOWN else ""
    listed = f"Its tables are {', '.join(tables[:SHOWN])}{more}" if tables else "It has no tables yet"
    return f"the lake has no {name}. {hint}{listed}"
