"""Ids that sort by time, and only grow."""

from __future__ import annotations

import calendar
import time


def moment_id(at: float) -> str:
    """Of a time in Unix seconds."""
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime(at)) + f"{int(at * 1000) % 1000:03d}Z"


def moment_of(id: str) -> float:
    """The time in whose second it was made, Unix seconds; 0 of what is no such id."""
    try:
        return float(calendar.timegm(time.strptime(id[:15], "%Y%m%dT%H%M%S")))
    except ValueError:
        return 0.0


def grown(made: str, last: str) -> str:
    """`made` where it is greater than `last`, the greatest that is known: where the clock was set back since, or that
    is of the same millisecond, it is the one behind `last`."""
    if made > last:
        return made
    begin, _, number = last.partition("-")
    return f"{begin}-{int(number or 0) + 1:06d}"
