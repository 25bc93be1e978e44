"""What `SHOW TABLES` answers. DuckDB's own answer would be empty: what a statement names is loaded for it alone."""

from __future__ import annotations

import re
from collections.abc import Mapping

from readers.past import literal

COLUMNS = ("name", "shows")
TABLE, NOTE = "the rows as they are", "what the jobs noted"
PARTS = ("every version of the rows", "what each transaction did", "the rows at a time, given as its argument")
ASKED = re.compile(r"\s*(show\s+(all\s+)?tables(\s+from\s+\w+)?|\.tables)\s*;?\s*", re.IGNORECASE)


def asked(sql: str) -> bool:
    return ASKED.fullmatch(sql) is not None


def query(shown: Mapping[str, str]) -> str:
    """In DuckDB's SQL. `shown`: names, and what they are."""
    rows = ", ".join(f"({literal(name)}, {literal(what)})" for name, what in shown.items())
    return f"SELECT * FROM (VALUES {rows}) AS tables({', '.join(COLUMNS)})"
