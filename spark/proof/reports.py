"""The reports of checks: a file each in the lake, by numbers that grow, so that the newest is known by its number.

Compactions read those since a mark that somebody else wrote a table (foreign_marks.py). Of the many that a lake gets in
a year the newest are kept; all results are in the table `_checks`, too.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from contract.names import QUALITY
from spark.lake.lake import Lake

# Three weeks of a check an hour. A mark that no compaction has looked at for so long stays until another check.
KEPT = 500


def numbers(lake: Lake) -> list[int]:
    """Of the reports that there are, growing."""
    stems = (name.removesuffix(".json") for name in lake.list(lake.at(QUALITY)) if name.endswith(".json"))
    return sorted(int(stem) for stem in stems if stem.isdecimal())


def write_report(lake: Lake, began: datetime, facts: dict[str, Any]) -> None:
    """For who has the lake's slot. Its number: Unix ms, but greater than all before where the clock was set back."""
    number = max(int(began.timestamp() * 1000), max(numbers(lake), default=0) + 1)
    lake.write(_path(lake, number), facts)


def remove_old(lake: Lake) -> int:
    """How many went. Nobody need be kept from the lake meanwhile: a new report is none of those that go."""
    old = numbers(lake)[:-KEPT]
    for number in old:
        lake.remove(_path(lake, number))
    return len(old)


def _path(lake: Lake, number: int) -> str:
    return lake.at(QUALITY, f"{number}.json")
