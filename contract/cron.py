"""Schedules as cron writes them: five fields, or one of a few words. Narrower than what Airflow reads, never wider."""

from __future__ import annotations

import re
from datetime import date, timedelta
from itertools import pairwise
from typing import Annotated

from pydantic import AfterValidator

from contract.mistake import MistakeError

PRESETS = {
    "@hourly": "0 * * * *", "@daily": "0 0 * * *", "@weekly": "0 0 * * 0", "@monthly": "0 0 1 * *",
    "@quarterly": "0 0 1 */3 *", "@yearly": "0 0 1 1 *",
}  # fmt: skip
MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
FIRST, SPAN = date(2024, 1, 1), 9 * 366  # days, in which 29 February comes again
LENGTHS = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
FIELDS: tuple[tuple[str, int, int, dict[str, int]], ...] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of the month", 1, 31, {}),
    ("month", 1, 12, {name: number for number, name in enumerate(MONTHS, 1)}),
    ("day of the week", 0, 7, {name: number for number, name in enumerate(DAYS)}),
)
PART = re.compile(r"(?:(?P<all>\*)|(?P<first>\w+)(?:-(?P<last>\w+))?)(?:/(?P<step>[0-9]{1,4}))?", re.ASCII)


def check(text: str) -> str:
    """The text itself. Raises ValueError with the field that is wrong."""
    if text in PRESETS:
        return text
    given = text.split()
    if len(given) != len(FIELDS):
        raise MistakeError(
            f"{text!r} is no cron schedule: it has {len(given)} fields, not 5 (minute, hour, day of the month, month, "
            "day of the week)",
            # A quote each: unquoted, YAML takes a * for an alias, and nothing for a @.
            "write '*/5 * * * *' for every five minutes, '0 3 * * *' for 3 at night, or one of "
            f"{', '.join(map(repr, PRESETS))}, with the quotes",
        )
    _, _, days, months, _ = (_numbers(one, *field) for one, field in zip(given, FIELDS, strict=True))
    if given[4] == "*" and min(days) > max(LENGTHS[month - 1] for month in months):
        raise MistakeError(f"{text!r} never comes: no such month has a day {min(days)}", "write a day that it has")
    return text


def longest(text: str) -> timedelta:
    """The longest time from one run to the next of a schedule that `check` takes."""
    fields = PRESETS.get(text, text).split()
    minutes, hours, days, months, weekdays = (_numbers(one, *of) for one, of in zip(fields, FIELDS, strict=True))
    either = "*" not in (fields[2][0], fields[4][0])  # where both are given, cron takes a day that one of them has

    def runs(day: date) -> bool:
        both = (day.day in days, bool({day.isoweekday(), day.isoweekday() % 7} & weekdays))
        return day.month in months and (any(both) if either else all(both))

    found = [day for day in (FIRST + timedelta(days=n) for n in range(SPAN)) if runs(day)]
    times = sorted(timedelta(hours=hour, minutes=minute) for hour in hours for minute in minutes)
    within = max((later - earlier for earlier, later in pairwise(times)), default=timedelta())
    between = max((later - earlier for earlier, later in pairwise(found)), default=timedelta(days=SPAN))
    return max(within, between - (times[-1] - times[0]))


def longest_seconds(schedule: str | None) -> int:
    """0 where there is none."""
    return int(longest(schedule).total_seconds()) if schedule else 0


Schedule = Annotated[str, AfterValidator(check)]


def _numbers(given: str, field: str, low: int, high: int, names: dict[str, int]) -> set[int]:
    """The numbers that a field stands for."""
    found: set[int] = set()
    for part in given.split(","):
        match = PART.fullmatch(part)
        first, last = _ends(match, low, high, names) if match else (None, None)
        step = int(match["step"] or 1) if match else 0
        if first is None or last is None or not low <= first <= last <= high or not step:
            what = f"{given!r} is no {field} of a cron schedule: {low} to {high}, as in '*', '1,2', '1-5/2'"
            raise MistakeError(what, f"write {low} to {high}, several by comma, or *")
        found.update(range(first, last + 1, step))
    return found


def _ends(match: re.Match[str], low: int, high: int, names: dict[str, int]) -> tuple[int | None, int | None]:
    """A part's first and last number; None for what is none."""
    if match["all"]:
        return low, high
    first = _number(match["first"], names)
    if match["last"]:
        return first, _number(match["last"], names)
    return first, None if match["step"] else first


def _number(text: str, names: dict[str, int]) -> int | None:
    return int(text) if text.isdigit() else names.get(text.lower())
