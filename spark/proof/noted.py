"""What a check keeps in the lake when it ends: its report, the differences with the time since when, and its results,
which trends are made from. For who has the lake's slot, so that each check goes on from what the one before noted.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from spark.lake import Lake
from spark.proof.answer import Answer
from spark.proof.differences import (
    Difference,
    dated,
    found_last,
    next_run,
    not_looked_at,
    note_checks,
    note_differences,
)
from spark.verification import Verification

FOLDER = "_quality"


def keep(
    check: Verification, began: datetime, facts: dict[str, Any], answers: Sequence[Answer], found: Sequence[Difference]
) -> None:
    """The check's time is that of its end: of two at once the later one knows what the other noted."""
    spark, lake = check.spark, check.lake
    run, known = next_run(spark, lake, datetime.now(UTC)), found_last(spark, lake)
    told: list[Difference] = []
    for answer in answers:
        name = answer.schema.db, answer.schema.table
        mine = dated([one for one in found if (one.db, one.table) == name], known.get(name, ()), began)
        before = check.reading.found.get(name, ()) if answer.name not in check.lost else ()
        left = not_looked_at(known.get(name, ()), before, mine)
        told += [*mine, *left]
        table = facts["tables"][answer.name]
        table["clears"] = not left and (answer.chosen is None or bool(before))
        if mine:
            table["since"] = min(one.since for one in mine if one.since).isoformat(timespec="seconds")
    note_differences(spark, lake, run, told)
    note_checks(spark, lake, run, facts)
    for table in (facts["expectations"].get("tables") or {}).values():
        table.pop("evaluations", None)  # a report is to be short
    lake.write(lake.at(FOLDER, f"{_number(lake, began)}.json"), facts)


def _number(lake: Lake, began: datetime) -> int:
    """Of the report: Unix ms, but greater than all before, so that the newest is known where the clock was set back."""
    stems = [name.removesuffix(".json") for name in lake.list(lake.at(FOLDER))]
    last = max((int(stem) for stem in stems if stem.isdecimal()), default=0)
    return max(int(began.timestamp() * 1000), last + 1)
