"""The forms of the DAGs that make a part of a table anew, and what of them becomes an argument of the job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from airflow.sdk import Param

TABLE_NAME = r"^[^.,]+\.[^.,]+$"


@dataclass(frozen=True)
class Form:
    """`options`: the job's arguments, templated."""

    params: dict[str, Param]
    options: dict[str, str]


def _tables(empty: str) -> Param:
    return Param(
        [],
        type="array",
        items={"type": "string", "pattern": TABLE_NAME},
        title="Tables",
        description=f"As db.table, one a line. {empty}",
    )


def _text(title: str, description: str, **more: Any) -> Param:
    return Param("", type="string", title=title, description=description, **more)


KEYS = _text(
    "Keys",
    'Of one table, as a JSON list: [1, 2], or [["north", 1]] where the key has several columns.',
    format="multiline",
)
FROM = _text("From", "The first value of the key's first column, of one table: a whole number, a date or a time.")
TO = _text("To", "The last value of it. The range has both ends; an empty one is open.")
RANGE = {"keys": KEYS, "from": FROM, "to": TO}
ARGUMENTS = {name: "{{ params['" + name + "'] }}" for name in RANGE}  # `from` is a word of the template's own
REPAIR = Form(
    {"tables": _tables("Empty: all tables at which their last check found a difference."), **RANGE}, ARGUMENTS
)
SOURCE = Param(
    "changes",
    type="string",
    enum=["changes", "kafka", "mysql"],
    title="Source",
    description="Where the rows come from: the lake's changes table, Kafka's topics again, or MySQL.",
)
SINCE = _text("Since", "The rows that changed at this time or later, of one table: 2026-11-22T10:42:00Z.")
UNTIL = _text("Until", "And before this time.")
BACKFILL = Form(
    {"tables": _tables("At least one."), "source": SOURCE, **RANGE, "since": SINCE, "until": UNTIL},
    {**ARGUMENTS, **{name: "{{ params." + name + " }}" for name in ("source", "since", "until")}},
)
