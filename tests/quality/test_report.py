"""A check's result in words."""

from __future__ import annotations

from quality.report import by_kind, describe


def test_columns_are_told_of_the_rows_that_changed_and_of_no_others() -> None:
    facts = {"equal": False, "differences": {"changed": 1, "missing": 2}, "columns": ["name"], "since": "2026-01-01"}
    assert describe({"tables": {"shop.orders": facts}}) == (
        "shop.orders: 2 rows missing in the lake, 1 row changed in name, first seen 2026-01-01 (keys in "
        "_differences of the lake)"
    )


def test_of_rows_that_are_not_told_apart_no_keys_are_promised() -> None:
    facts = {"equal": False, "differences": {"chunk": 1}, "reason": "stale since ..."}
    assert describe({"tables": {"shop.orders": facts}}) == "shop.orders: 1 whole chunk of rows, stale since ..."


def test_what_differs_is_counted_in_words() -> None:
    facts = {"differences": {"missing": 1, "changed": 2}, "columns": ["name", "price"]}
    assert by_kind(facts) == "1 row missing in the lake, 2 rows changed in name, price"
    assert by_kind({}) == ""
