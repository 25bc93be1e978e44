"""What checks found is kept in the lake, with the time since when; and the queries of docs/proof.md."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark.lake.lake import Lake
from spark.proof.differences import (
    CHANGED,
    CHUNK,
    MISSING,
    Difference,
    dated,
    found_last,
    last_check,
    latest,
    next_run,
    not_looked_at,
    note_checks,
    note_differences,
)

PAGE = Path(__file__).parents[2] / "docs" / "proof.md"
LATE, LOST = (
    Difference("shop", "orders", CHANGED, '{"id":1}', ("amount",)),
    Difference("shop", "orders", MISSING, '{"id":2}'),
)
MANY = Difference("shop", "orders", CHUNK, source_where="`id` > 9", lake_where="`id` > 9")


def at(minute: int) -> datetime:
    return datetime(2026, 11, 22, 10, minute, tzinfo=UTC)


def check(spark: SparkSession, lake: Lake, minute: int, *found: Difference) -> list[Difference]:
    told = dated(found, latest(spark, lake, "shop", "orders"), at(minute))
    run = next_run(spark, lake, at(minute))
    note_differences(spark, lake, run, told)
    failed = {"ok": False, "expectation": "expect_column_values_to_be_unique", "column": "id", "observed": 3}
    facts: dict[str, Any] = {
        "tables": {"shop.orders": {"equal": not found, "source_count": 5, "lake_count": 5 - len(found)}},
        "expectations": {"tables": {"shop.orders": {"evaluations": [failed]}}},
    }
    note_checks(spark, lake, run, facts)
    return latest(spark, lake, "shop", "orders")


def test_a_difference_keeps_the_time_of_the_check_that_found_it_first(spark: SparkSession, lake: Lake) -> None:
    assert latest(spark, lake, "shop", "orders") == []
    assert [one.since for one in check(spark, lake, 1, LATE)] == [at(1)]
    found = {one.kind: one for one in check(spark, lake, 2, LATE, LOST, MANY)}
    assert {kind: one.since for kind, one in found.items()} == {CHANGED: at(1), MISSING: at(2), CHUNK: at(2)}
    assert (found[CHANGED].key, found[CHANGED].columns, found[CHUNK].lake_where) == (
        '{"id":1}',
        ("amount",),
        "`id` > 9",
    )

    queries = re.search(r"```sql\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert queries is not None
    now, trend = [part.strip() for part in queries[1].replace("/lake/shop", lake.root).split(";") if part.strip()]
    assert {(row["kind"], row["key"]) for row in spark.sql(now).collect()} == {
        (CHANGED, '{"id":1}'), (MISSING, '{"id":2}'), (CHUNK, None),
    }  # fmt: skip
    days = {row["check"]: (row["good"], row["bad"]) for row in spark.sql(trend).collect()}
    assert days == {"equal to the source": (0, 2), "expect_column_values_to_be_unique": (0, 2)}

    noted = found_last(spark, lake)
    assert {one.identity: one.since for one in noted.pop(("shop", "orders"))} == {
        one.identity: one.since for one in found.values()
    }
    assert noted == {}
    assert check(spark, lake, 3) == [], "the table is equal again"
    assert found_last(spark, lake) == {}
    assert [one.since for one in check(spark, lake, 4, LATE)] == [at(4)], "and what comes back is new"


@pytest.mark.soak
def test_the_last_check_is_the_one_that_came_last_whatever_the_clock_told(spark: SparkSession, lake: Lake) -> None:
    """It is set back before the second, and is where it was before the fourth."""
    runs = list[str | None]()
    for minute, found in ((9, LATE), (3, LOST), (3, MANY), (10, LOST)):
        assert check(spark, lake, minute, found) == found_last(spark, lake)["shop", "orders"]
        assert [one.kind for one in latest(spark, lake, "shop", "orders")] == [found.kind]
        runs.append(last_check(spark, lake, "shop", "orders"))
    begin = "20261122T1009"
    assert runs == [f"{begin}00000Z", f"{begin}00000Z-000001", f"{begin}00000Z-000002", "20261122T101000000Z"]


def test_what_a_check_noted_that_died_is_no_other_one_s(spark: SparkSession, lake: Lake) -> None:
    note_differences(spark, lake, next_run(spark, lake, at(9)), dated([LATE], (), at(9)))
    assert [one.kind for one in check(spark, lake, 9, LOST)] == [MISSING]


def test_what_another_check_noted_meanwhile_stays() -> None:
    """Of three: one was known before and is mended, one this check found too, one it cannot have looked for."""
    assert not_looked_at([LATE, LOST, MANY], before=[LATE], found=[LOST]) == [MANY]
    assert not_looked_at([LATE], before=[LATE], found=[]) == []
