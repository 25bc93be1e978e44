"""The forms of the DAGs that a person starts, and what of them becomes an argument of the job.

Airflow's page stars a field that may not be null, and sends nothing while that is empty. It makes an item of each line
of a list, of an empty one too, and null of a field that was emptied again. The API shows of a value that it refuses the
schema, with its `$comment`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from airflow.sdk import Param

from contract.pipeline_maintenance import STEPS

TABLE_NAME = r"^[^.,]+\.[^,]+$"  # the job takes its tables by comma; of a database's name no dot is a part in the lake
FORM = "as db.table; a name with a comma is not taken"
NAME: dict[str, Any] = {"pattern": TABLE_NAME, "$comment": FORM}
LINES = {"type": "string", "pattern": rf"^\s*$|{TABLE_NAME}", "$comment": f"a table, {FORM}"}
WRITTEN: dict[str, Any] = {"contains": {"type": "string", "pattern": r"\S", "$comment": "at least one"}}
KEY = {"type": "string", "$comment": 'a key, as a text, such as "7"'}
TEXTS: dict[str, Any] = {"$comment": 'a list of keys, each a text, such as ["7", "8"]'}
ONE_A_LINE = (
    "Of which rows, one a line: the key's value, or where it has several columns an object of them, "
    'such as {"region": "eu", "n": 7}.'
)
SOME = "Only some rows of one table"  # a section of its own, that the page opens at a click


@dataclass(frozen=True)
class Form:
    """`options`: the job's arguments, templated; `tables`: its argument of that name."""

    params: dict[str, Param]
    options: dict[str, str]
    tables: str = "{{ (params.tables or []) | map('trim') | select | unique(true) | join(',') }}"


def _tables(empty: str) -> Param:
    return Param(
        [],
        type=["array", "null"],
        items=LINES,
        title="Tables",
        description=f"As db.table, one a line. {empty}",
    )


def _text(title: str, description: str, **more: Any) -> Param:
    return Param("", type=["string", "null"], title=title, description=description, section=SOME, **more)


def _time(title: str, description: str) -> Param:
    """The page picks it to the minute, in the zone that the person has chosen there, and sends it as UTC."""
    return Param(None, type=["string", "null"], format="date-time", title=title, description=description, section=SOME)


def _switch(title: str, description: str) -> Param:
    return Param(False, type=["boolean", "null"], title=title, description=description)


def _given(name: str) -> str:
    """By its name in brackets: `from` is a word of the template's own."""
    return "{{ (params['" + name + "'] or '') | trim }}"


def _lines(name: str) -> str:
    """As they were written, as JSON; nothing where all are empty."""
    return (
        "{{ params['" + name + "'] | tojson if (params['" + name + "'] or []) | map('trim') | select | list else '' }}"
    )


def _yes(name: str) -> str:
    return "{{ 'yes' if params." + name + " else '' }}"


ALL = "Empty: all tables of the pipeline."
EXISTING = _switch(
    "Only tables that exist", "Passes by tables of the list that the source does not have, in place of failing."
)
SNAPSHOT = Form({"tables": _tables(ALL), "existing": EXISTING}, {"existing": _yes("existing")})


KEYS = Param(
    [],
    type=["array", "null"],
    items=KEY,
    title="Keys",
    description=ONE_A_LINE,
    section=SOME,
    **TEXTS,
)
FROM = _text("From key", "Or a range: the first value of the key's first column, a whole number, a date or a time.")
TO = _text("To key", "The range's last value. It has both ends; an empty one is open.")
RANGE = {"keys": KEYS, "from": FROM, "to": TO}
ARGUMENTS = {"keys": _lines("keys"), "from": _given("from"), "to": _given("to")}
REPAIR = Form(
    {"tables": _tables("Empty: all tables at which their last check found a difference."), **RANGE}, ARGUMENTS
)
SOURCES = {
    "changes": "changes: the lake's table of all changes",
    "kafka": "kafka: Kafka's topics, read again",
    "mysql": "mysql: the tables themselves",
}
SOURCE = Param(
    "changes",
    type="string",
    enum=[*SOURCES],
    values_display=SOURCES,
    title="Source",
    description="Where the rows come from. They are the same whichever it is.",
)
SOME_TABLES = Param(
    type="array", items=LINES, **WRITTEN, title="Tables", description="As db.table, one a line. At least one."
)
SINCE = _time("Changed since", "Or a time: the rows that changed then or later, as they are now.")
UNTIL = _time("Changed until", "And before this. An empty end is open.")
BACKFILL = Form(
    {"tables": SOME_TABLES, "source": SOURCE, **RANGE, "since": SINCE, "until": UNTIL},
    {**ARGUMENTS, **{name: _given(name) for name in ("source", "since", "until")}},
)
WHOLE = _switch(
    "All rows", "Compares all of each table, also where the pipeline file asks for samples (quality.sample_percent)."
)
FIRST_TRY = "{{ 'yes' if params.anew and ti.try_number == 1 else '' }}"
ANEW = _switch("Read all again", "Takes up nothing that a check has read which did not end; its own second try does.")
QUALITY = Form({"tables": _tables(ALL), "whole": WHOLE, "anew": ANEW}, {"whole": _yes("whole"), "anew": FIRST_TRY})
DO = Param(
    [*STEPS],
    type="array",
    items={"type": "string", "enum": [*STEPS]},
    minItems=1,
    examples=[*STEPS],  # they make a list to choose from of it
    title="Steps",
    description_md="\n".join(f"- **{step}** {about}" for step, about in STEPS.items()),
)
MAINTENANCE = Form({"tables": _tables(ALL), "steps": DO}, {"steps": "{{ params.steps | join(',') }}"})
ROWS = Param(
    type="array",
    items=KEY,
    **WRITTEN,
    title="Keys",
    description=f"{ONE_A_LINE} Values as the source has them, also where a mask hides them.",
    **TEXTS,
)
PRESENT = _switch(
    "Even if the source has the row", "A check then misses it in the lake, and its next change brings it back."
)
NOW = _switch(
    "From all files at once",
    "Ends time travel to before in the tables concerned, and readers and checks that have begun.",
)
ONE_TABLE = Param(type="string", title="Table", description="As db.table.", **NAME)
ERASE = Form(
    {
        "table": ONE_TABLE,
        "keys": ROWS, "present": PRESENT, "now": NOW,
    },
    {
        "keys": _lines("keys"), "present": _yes("present"), "now": _yes("now"),
        "run": "{{ run_id }}", "by": "{{ dag_run.triggering_user_name or '' }}",
    },
    tables="{{ params.table | trim }}",
)  # fmt: skip
