"""Where a table that has no snapshot was made, and so was empty: all of its rows came behind that.

Only a statement proves it: a table of which no mark says that rows are missing may still have had some, where the mark
was taken away because another lake, which this one replaced, had read them. An IF NOT EXISTS is logged also where there
is a table, and what a comment hides is not looked at.
"""

from __future__ import annotations

import re

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from contract import names
from contract.checkpoint import Checkpoint
from spark.evolution.schema_change_rows import Place
from spark.lake.applied import NEVER, Applied
from spark.lake.lake import Lake
from spark.lake.stopped import Name
from spark.tables.merge import sequence

NAME = r"(`(?:[^`]|``)+`|[\w$\u0080-\U0010ffff]+)"
MAKES = re.compile(
    rf"(?:\s|/\*(?![!M]).*?\*/)*CREATE\s+TABLE\s+(?!IF\s){NAME}\s*(?:\.\s*{NAME})?", re.I | re.DOTALL | re.ASCII
)


def made(spark: SparkSession, lake: Lake, name: Name, checkpoint: Checkpoint) -> Applied | None:
    """As a snapshot that was read there and found no row; None where nothing proves it, or the table was not followed
    by one set of rules since. `checkpoint`: the lake's."""
    if not lake.is_table(path := lake.at(names.SCHEMA_CHANGES)):
        return None
    rows = spark.read.format("delta").load(path).where((fn.col("db") == name[0]) & (fn.col("tbl") == name[1]))
    rows = rows.where("kind = 'shape' and statement is not null").select("at", "ts", "statement")
    found = [(tuple(row["at"]), row["ts"]) for row in rows.collect() if makes(row["statement"], name)]
    if not found:
        return None
    at, ts = max(found)
    if _otherwise_behind(checkpoint, name, at):
        return None
    return NEVER.model_copy(update={"floor": [*at, -1, -1], "p0_ms": int(ts.timestamp() * 1000)})


def makes(statement: str, name: Name) -> bool:
    """Whether it makes that table, for certain: a MERGE table's statement is noted for each table in it, too."""
    if (found := MAKES.match(statement)) is None:
        return False
    named = [_unquoted(part) for part in found.groups() if part]
    return named == [name[1]] or named == [*name]


def _unquoted(text: str) -> str:
    return text[1:-1].replace("``", "`") if text.startswith("`") else text


def _otherwise_behind(checkpoint: Checkpoint, name: Name, at: Place) -> bool:
    """Whether changes since may be missing, or be shown by other rules, which may have left some out."""
    others = checkpoint.since(*name), checkpoint.forgotten, checkpoint.shown_since(*name)
    return any(place > at for place in others if place)


def before(changes: DataFrame, name: Name, floor: list[int]) -> bool:
    """Whether there is a change of the table that is not behind that place: it was there before, or the statement that
    made it filled it, too."""
    mine = changes.where((fn.col("tbl") == ".".join(name)) & (fn.col("db") == name[0]))
    return not mine.where(fn.col("_seq") <= sequence(floor)).isEmpty()
