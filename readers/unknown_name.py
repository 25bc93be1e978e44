"""What a person is told of a name that the lake does not have. DuckDB would suggest of its own tables, since one
of the lake is loaded only for a statement that names it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from contract import table_names
from contract.pipeline import Pipeline

SHOWN = 20  # tables
LIKE = 0.6  # a table may be named without its database, and a part of its past by an ending
AT = re.compile(r"(?<![\w\"'])at(?![\w\"'])", re.IGNORECASE)
UNKNOWN = re.compile(r'^Catalog Error: (?P<kind>Table|Table Function) with name "?(?P<name>.+?)"? does not exist')


def told(
    message: str, pipeline: Pipeline, tables: Iterable[str], parts: Iterable[str], refused: Mapping[str, str]
) -> str:
    """DuckDB's message, or where it is of a name that no table has, one that says which ones there are. `tables`: as
    `db.table`; `parts`: the names of their pasts. `refused`: why the lake does not have these names, in lower case."""
    if not (found := UNKNOWN.match(message)):
        return message
    name, tables = found["name"], sorted(tables)
    if name.lower() in refused:
        return refused[name.lower()]
    if why := _left_out(pipeline, name, tables):
        return f"the lake has no {name}: {why}"
    known = {
        **{table.split(".", 1)[-1].lower(): table for table in tables},
        **{table.lower(): table for table in tables},
    }
    known |= {part.lower(): part for part in parts}
    close = [known[one] for one in table_names.close(name, known, 3, LIKE)]
    hint = f"Did you mean {' or '.join(dict.fromkeys(close))}? " if close else ""
    more = f" and {len(tables) - SHOWN} more" if len(tables) > SHOWN else ""
    listed = f"Its tables are {', '.join(tables[:SHOWN])}{more}" if tables else "It has no tables yet"
    return f"the lake has no {name}. {hint}{listed}"


def hint(message: str, sql: str) -> str:
    """Of a column of the jobs' notes whose name is a word of DuckDB's SQL; empty of another mistake."""
    if message.startswith("Parser Error") and AT.search(sql):
        return '. A column that is named at is written "at": DuckDB has a clause AT'
    return ""


def _left_out(pipeline: Pipeline, name: str, tables: Iterable[str]) -> str | None:
    """By what of the pipeline file the table is excluded, in whichever database the name may be of."""
    dbs = dict.fromkeys(one.partition(".")[0] for one in (*tables, *pipeline.tables.include))
    names = [name] if "." in name else [f"{db}.{name}" for db in dbs]
    return next(filter(None, (table_names.left_out(pipeline, one) for one in names)), None)
