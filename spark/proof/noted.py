"""What a check keeps in the lake when it ends: its report, the differences with the time since when, and its results,
which trends are made from. For who has the lake's slot, so that each check goes on from what the one before noted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any

from spark.lake.stopped import Name
from spark.proof.answer import Answer
from spark.proof.differences import (
    Difference,
    Unmet,
    dated,
    equal_last,
    found_last,
    next_run,
    not_looked_at,
    note_checks,
    note_differences,
    unmet_last,
)
from spark.proof.erased import WHILE, without
from spark.proof.judged import ROWS
from spark.proof.reports import write_report
from spark.proof.verification import MEANWHILE, Verification


def keep(
    check: Verification, began: datetime, facts: dict[str, Any], answers: Sequence[Answer], found: Sequence[Difference]
) -> None:
    """The check's time is that of its end: of two at once the later one knows what the other noted."""
    spark, lake = check.spark, check.lake
    allowed = without(lake, check.reading.kept.erasures, found)
    run, known, unmet = next_run(spark, lake, datetime.now(UTC)), found_last(spark, lake), unmet_last(spark, lake)
    told, waiting = list[Difference](), dict[str, list[Unmet]]()
    equal = cache(lambda: equal_last(spark, lake))  # where expectations alone were not met, a sample judges all of them
    for answer in answers:
        name = answer.schema.db, answer.schema.table
        mine = dated(_of(name, allowed), known.get(name, ()), began)
        before = check.reading.found.get(name, ()) if answer.name not in check.lost else ()
        left = not_looked_at(known.get(name, ()), before, mine)
        told += [*mine, *left]
        table = facts["tables"][answer.name]
        waiting[answer.name] = _not_judged(facts, answer.name, unmet.get(answer.name, ()))
        looked_at = answer.chosen is None or bool(before) or (answer.name in unmet and answer.name in equal())
        table["clears"] = looked_at and not left and not waiting[answer.name]
        if mine:
            table["since"] = min(one.since for one in mine if one.since).isoformat(timespec="seconds")
        elif _of(name, found):
            table["reason"] = MEANWHILE.format(WHILE)
            check.lost.add(answer.name)
    for name in check.reading.unread:  # of these nobody looked at anything
        told += known.get(name, ())
        table = ".".join(name)
        waiting[table] = _not_judged(facts, table, unmet.get(table, ()))
        facts["tables"][table]["clears"] = False
    note_differences(spark, lake, run, told)
    lake.settle()  # of a check that is known, its differences are
    note_checks(spark, lake, run, facts, waiting)
    shorten(facts)
    write_report(lake, began, facts)


def shorten(facts: Mapping[str, Any]) -> None:
    """A report is to be short."""
    for table in (facts["expectations"].get("tables") or {}).values():
        table.pop("evaluations", None)


def _of(name: Name, found: Sequence[Difference]) -> list[Difference]:
    return [one for one in found if (one.db, one.table) == name]


def _not_judged(facts: Mapping[str, Any], name: str, unmet: Sequence[Unmet]) -> list[Unmet]:
    """Which of the table's expectations that were not met before this check left out."""
    told = (facts["expectations"].get("tables") or {}).get(name)
    if told is None:  # the lake does not have the table: none, if the source has no row either
        return [] if facts["tables"][name]["equal"] else [*unmet]
    left_out = told["unjudged"]
    asked = {Unmet(one["expectation"], one["column"]) for one in told["evaluations"]}
    broken = bool(told.get("files"))  # one that stood there may be left out, and nobody can tell which
    return [one for one in unmet if ROWS in left_out or one.check in left_out or (broken and one not in asked)]
