"""Which rows a person chooses for a repair or a backfill: what is wrong with that whatever the table is like.

In: texts, as the command line and Airflow's forms give them. `refuse_repair` and `refuse_backfill` hold all of it: the
command asks before Spark starts, the job for whoever starts it otherwise. Raise ChosenRowsError.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from contract.moments import moment

SEVERAL = '[["north", 1]] or [{"region": "north", "item": 1}]'
FORM = f"write a JSON list, such as [1, 2] or, of a key of several columns, {SEVERAL}"
DIGITS = re.compile(r"\s*-?\d{1,99}\s*")  # no key has more, and Python reads 4,300 at most
UNTOUCHED = "Nothing was read or written"

Moments = tuple[datetime, datetime]


class ChosenRowsError(ValueError):
    """What chooses no rows. `options`: which of what is given is wrong; none where it is the tables."""

    def __init__(self, text: str, *options: str) -> None:
        super().__init__(text)
        self.options = options


def refuse_repair(given: Mapping[str, str], tables: Collection[str]) -> None:
    if not refuse_rows(given):
        return
    if len(tables) != 1:
        raise ChosenRowsError(f"keys and ranges are those of one table: name it, as db.table. {UNTOUCHED}")


def refuse_backfill(given: Mapping[str, str], tables: Collection[str]) -> Moments | None:
    """Returns the time that is given, if one is."""
    rows, between = refuse_rows(given), moments(given["since"], given["until"])
    if rows and between:
        chosen = [name for name in ("keys", "from", "to", "since", "until") if given[name]]
        raise ChosenRowsError(f"keys, or a range of them, and a time are given: choose one. {UNTOUCHED}", *chosen)
    if not tables or ((rows or between) and len(tables) != 1):
        raise ChosenRowsError(
            "name the tables to be made anew, as db.table; keys, ranges and times are those of one table"
        )
    return between


def refuse_rows(given: Mapping[str, str]) -> bool:
    """`keys`, or `from` and `to`; whether there is any of it."""
    keys, low, high = given["keys"], given["from"], given["to"]
    if keys and (low or high):
        chosen = [name for name in ("keys", "from", "to") if given[name]]
        raise ChosenRowsError(f"keys and a range are given: choose one of them. {UNTOUCHED}", *chosen)
    if keys:
        key_list(keys)
    if DIGITS.fullmatch(low) and DIGITS.fullmatch(high) and int(low) > int(high):
        raise turned("the range", low, high, "from", "to")
    return bool(keys or low or high)


def key_list(text: str) -> list[Any]:
    """Of a JSON list the keys, whatever they are; empty lines of a form are none."""
    try:
        given = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ChosenRowsError(f"what is given as keys is no JSON ({error}): {FORM}", "keys") from None
    wanted = [one for one in given if str(one).strip()] if isinstance(given, list) else []
    if not wanted:
        raise ChosenRowsError(f"what is given as keys is no list of keys: {FORM}", "keys")
    return wanted


def moments(since: str, until: str) -> Moments | None:
    """In UTC; None where neither is given."""
    if not (since or until):
        return None
    begin, end = _moment("since", since or "1970-01-01T00:00:00Z"), _moment("until", until or "9999-12-31T00:00:00Z")
    if begin >= end:
        raise turned("the time", since, until, "since", "until")
    return begin, end


def _moment(option: str, text: str) -> datetime:
    try:
        return moment(text)
    except ValueError as error:
        raise ChosenRowsError(str(error), option) from None


def turned(what: str, low: str, high: str, *options: str) -> ChosenRowsError:
    return ChosenRowsError(f"{what} is the wrong way round: from {low} to {high}. {UNTOUCHED}", *options)
