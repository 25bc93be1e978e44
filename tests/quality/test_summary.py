"""A job's report as a person reads it in the task's log."""

from __future__ import annotations

from quality.report import differences
from quality.summary import lines


def test_facts_first_then_one_line_a_table() -> None:
    report = {
        "job": "compact",
        "pipeline": "shop",
        "ok": True,
        "error": None,
        "seconds": 12.34,
        "complete_to_ms": 1_790_000_000_000,
        "tables": {"shop.orders": {"rows": 336776, "equal": True}, "shop.a": {"rows": 5, "reason": None}},
    }
    assert list(lines(report)) == [
        "compact of shop: done in 12.3 s, as of 2026-09-21 14:13:20 UTC",
        "table        rows     equal",
        "shop.a       5        -",
        "shop.orders  336,776  yes",
    ]


def test_a_check_tells_what_a_person_asks_of_a_table() -> None:
    """Which of its chunks, in which seconds, with which checksums is in its JSON."""
    facts = {
        "equal": True, "source_count": 1200, "lake_count": 1200, "source_checksum": "17" * 10, "boundary": "a" * 90,
        "chunks": 10, "chunks_compared": 10, "reason": None, "stale": "stale since noon",
    }  # fmt: skip
    tables = {"shop.a": facts, "shop.b": {**facts, "chunks_compared": 3}}
    assert list(lines({"job": "verify", "pipeline": "shop", "ok": True, "tables": tables}))[1:] == [
        "table   equal  rows in the source  rows in the lake  chunks compared",
        "shop.a  yes    1,200               1,200             -",
        "shop.b  yes    1,200               1,200             3 of 10",
    ]


def test_whom_the_error_tells_the_faults_is_told_them_once() -> None:
    failed = {"job": "verify", "pipeline": "shop", "ok": False, "tables": {"shop.a": {"equal": False, "reason": "x"}}}
    assert [*lines(failed)][-1] == "shop.a: x"
    assert [*lines(failed, faults=False)][1:] == ["table   equal  reason", "shop.a  no     x"]


def test_one_is_told_as_one() -> None:
    report = {"job": "compact", "pipeline": "shop", "ok": True, "changes": 1, "rounds": 2}
    assert [*lines(report)] == ["compact of shop: done, 1 change, 2 rounds"]


def test_a_failed_job_without_tables() -> None:
    assert list(lines({"job": "verify", "pipeline": "shop", "ok": False, "error": "x"})) == ["verify of shop: failed"]


def test_a_run_that_failed_is_told_in_words_and_long_reasons_below_the_tables() -> None:
    why = "a column's type changed: v is bigint now and int in the lake. Run the snapshot for the table"
    report = {
        "job": "compact", "pipeline": "shop", "ok": False, "seconds": 81.5, "again": False, "named": True,
        "changes": 1234, "nulled": 0, "tables": {"shop.a": {"rows": 5, "changes_last_run": 2, "stopped": why}},
    }  # fmt: skip
    assert list(lines(report)) == [
        "compact of shop: failed in 81.5 s, 1,234 changes",
        "table   rows  changes last run",
        "shop.a  5     2",
        f"shop.a: stopped: {why}",
    ]
    assert "another run may do better" in next(lines({**report, "again": True}))


def test_what_an_erasure_left_is_told() -> None:
    report = {"job": "erase", "pipeline": "shop", "ok": True, "remains": ["topic shop.a: until 2026-11-30 (by age)"]}
    assert list(lines(report))[1:] == ["still there: topic shop.a: until 2026-11-30 (by age)"]


def test_a_check_tells_its_expectations_and_every_fault() -> None:
    failed = {
        "expectation": "expect_column_values_to_be_unique",
        "column": "id",
        "observed": "2 rows",
        "expected": None,
    }
    report = {
        "job": "verify",
        "pipeline": "shop",
        "ok": False,
        "tables": {"shop.a": {"equal": False, "source_count": 2, "lake_count": 3}},
        "expectations": {"tables": {"shop.a": {"evaluated": 4, "failed": [failed]}}},
    }
    assert list(lines(report))[-2:] == [
        "expectations: 4 evaluated, 1 failed",
        "shop.a: rows 2 in the source, 3 in the lake; expect_column_values_to_be_unique of id: found 2 rows",
    ]


def test_of_a_table_that_could_not_be_compared_the_reason_is_told_alone() -> None:
    facts = {"equal": False, "source_count": 2, "lake_count": None, "reason": "it could not be compared"}
    assert differences({"tables": {"shop.a": facts}}) == {"shop.a": "it could not be compared"}


def test_a_check_tells_what_it_did_not_judge() -> None:
    left_out = {"ok": None, "evaluated": 0, "failed": [], "unjudged": {"its rows": "altered"}}
    well = {"ok": True, "evaluated": 4, "failed": [], "unjudged": {}}
    tables = {"shop.a": left_out, "shop.b": well}
    report = {"job": "verify", "pipeline": "shop", "ok": True, "expectations": {"ok": None, "tables": tables}}
    assert list(lines(report))[1:] == [
        "expectations: 4 evaluated, 0 failed",
        "shop.a: no expectation checks its rows: altered",
    ]


def test_a_check_tells_what_speaks_against_a_table_that_is_equal() -> None:
    doubtful = {"equal": True, "doubts": ["stale since an ALTER"], "nulled": 12}
    report = {
        "job": "verify",
        "pipeline": "shop",
        "ok": True,
        "tables": {"shop.a": doubtful, "shop.b": {"equal": True}},
    }
    assert list(lines(report))[1:] == [
        "table   equal", "shop.a  yes", "shop.b  yes", "shop.a: equal, but stale since an ALTER",
        "shop.a: equal, where NULL stands for 12 values that the lake's types cannot hold (lake.unrepresentable)",
    ]  # fmt: skip
