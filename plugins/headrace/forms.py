"""The forms of the DAGs that a person starts, and what of them becomes an argument of the job."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from airflow.sdk import Param

from contract.pipeline_maintenance import STEPS

TABLE_NAME = r"^[^.,]+\.[^.,]+$"


@dataclass(frozen=True)
class Form:
    """`options`: the job's arguments, templated; `tables`: its argument of that name."""

    params: dict[str, Param]
    options: dict[str, str]
    tables: str = "{{ params.tables | join(',') }}"


def _tables(empty: str) -> Param:
    return Param(
        [],
        type="array",
        items={"type": "string", "pattern": TABLE_NAME},
        title="Tables",
        description=f"As db.table, one a line. {empty}",
    )


def _text(title: str, description: str, **more: Any) -> Param:
    """May be left empty: Airflow's page starts no run while one that may not be null is."""
    return Param("", type=["string", "null"], title=title, description=description, **more)


def _switch(title: str, description: str) -> Param:
    return Param(False, type="boolean", title=title, description=description)


def _given(name: str) -> str:
    """By its name in brackets: `from` is a word of the template's own."""
    return "{{ params['" + name + "'] or '' }}"


def _yes(name: str) -> str:
    return "{{ 'yes' if params." + name + " else '' }}"


ALL = "Empty: all tables of the pipeline."
EXISTING = _switch(
    "Only tables that exist", "Passes by tables of the list that the source does not have, in place of failing."
)
SNAPSHOT = Form({"tables": _tables(ALL), "existing": EXISTING}, {"existing": _yes("existing")})


KEYS = _text(
    "Keys",
    'Of one table, as a JSON list: [1, 2], or [["north", 1]] where the key has several columns.',
    format="multiline",
)
FROM = _text("From", "The first value of the key's first column, of one table: a whole number, a date or a time.")
TO = _text("To", "The last value of it. The range has both ends; an empty one is open.")
RANGE = {"keys": KEYS, "from": FROM, "to": TO}
ARGUMENTS = {name: _given(name) for name in RANGE}
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
    {**ARGUMENTS, **{name: _given(name) for name in ("source", "since", "until")}},
)
WHOLE = _switch("All rows", "Also where the pipeline file asks for samples (quality.sample_percent).")
QUALITY = Form({"tables": _tables(ALL), "whole": WHOLE}, {"whole": _yes("whole")})
DO = Param(
    [*STEPS],
    type="array",
    items={"type": "string", "enum": [*STEPS]},
    minItems=1,
    title="Steps",
    description="What to do: " + "; ".join(f"{step}: {about}" for step, about in STEPS.items()),
)
MAINTENANCE = Form({"tables": _tables(ALL), "steps": DO}, {"steps": "{{ params.steps | join(',') }}"})
ROWS = Param(
    [],
    type="array",
    items={"type": "string"},
    title="Keys",
    description="Of which rows, one a line: the key's value, or where it has several columns an object of them, "
    'such as {"region": "eu", "n": 7}. Values as the source has them, also where a mask hides them.',
)
PRESENT = _switch(
    "Even if the source has the row", "A check then misses it in the lake, and its next change brings it back."
)
NOW = _switch(
    "From all files at once",
    "Ends time travel to before in the tables concerned, and readers and checks that have begun.",
)
ERASE = Form(
    {
        "table": Param(type="string", pattern=TABLE_NAME, title="Table", description="As db.table."),
        "keys": ROWS, "present": PRESENT, "now": NOW,
    },
    {
        "keys": "{{ params['keys'] | tojson }}", "present": _yes("present"), "now": _yes("now"),
        "run": "{{ run_id }}", "by": "{{ dag_run.triggering_user_name or '' }}",
    },
    tables="{{ params.table }}",
)  # fmt: skip
