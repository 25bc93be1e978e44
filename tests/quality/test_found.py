"""What is told of an expectation has no value of a row in it, whatever it is that was expected."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import great_expectations.expectations as gxe
import pytest
from great_expectations.expectations import Expectation

from quality.found import SHOWN, reason, told
from quality.report import describe


def result(type: str, seen: dict[str, Any], raised: str = "") -> Any:
    config = SimpleNamespace(type=type, kwargs={"column": "mail", "max_value": 3}, description=None)
    info = {"metric": {"raised_exception": True, "exception_message": raised}} if raised else {}
    return SimpleNamespace(success=False, result=seen, expectation_config=config, exception_info=info)


@pytest.mark.parametrize(
    "type",
    [
        "expect_column_max_to_be_between",
        "expect_column_distinct_values_to_be_in_set",
        "expect_column_sum_to_be_between",
    ],
)
def test_a_value_of_a_row_is_in_the_pages_alone(type: str) -> None:
    found = told(result(type, {"observed_value": "ann@example.com"}))
    text = describe({"expectations": {"tables": {"shop.users": {"failed": [found]}}}})
    assert text == f"shop.users: {type} of mail: found what its page in the data docs shows"


@pytest.mark.parametrize(
    ("type", "seen", "observed"),
    [
        ("expect_table_row_count_to_be_between", {"observed_value": 6}, 6),
        ("expect_column_values_to_be_of_type", {"observed_value": "LongType"}, "LongType"),
        ("expect_column_values_to_be_in_set", {"unexpected_count": 2}, "2 rows that break it"),
        ("expect_column_max_to_be_between", {}, None),
    ],
)
def test_a_count_and_a_type_are_told(type: str, seen: dict[str, Any], observed: object) -> None:
    assert told(result(type, seen))["observed"] == observed


def test_nor_is_one_in_the_error_of_what_could_not_be_judged() -> None:
    java = "An error occurred while calling o1.collect.\n: [CAST_INVALID_INPUT] The value {} is none. SQLSTATE: 22018"
    found = told(result("expect_column_max_to_be_between", {}, java.format("'ann@example.com' of the type \"STRING\"")))
    assert found["observed"] == "[CAST_INVALID_INPUT]: what its page in the data docs shows"
    large = '[CAST_OVERFLOW] The value 3000000000L of the type "BIGINT" cannot be cast. SQLSTATE: 22003'
    assert "3000000000" not in told(result("expect_column_max_to_be_between", {}, large))["observed"]
    lost = told(result("expect_column_max_to_be_between", {}, "[FAILED_READ_FILE] file '/a.parquet' SQLSTATE: KD001"))
    assert "/a.parquet" in lost["observed"]


def test_an_error_that_a_user_s_class_raises_is_told_without_a_value() -> None:
    text = "[CAST_INVALID_INPUT] The value 'a secret' is none. SQLSTATE: 22018"
    assert reason(text, "the log") == "[CAST_INVALID_INPUT]: the log"
    assert reason("no such column: x\nmore") == "no such column: x"


@pytest.mark.parametrize(
    "text",
    [
        "(1525, \"Incorrect DATE value: '2026-02-30'\")", "(1366, \"Incorrect string value: 'a secret' for column x\")",
        "java.sql.SQLException: Cannot convert string '\\xC5\\x81' from utf8mb4 to latin1",
    ],
)  # fmt: skip
def test_a_servers_error_about_a_value_is_told_without_it(text: str) -> None:
    assert reason(text, "the log") == "an error about a value: the log"


def test_each_of_these_types_is_one_of_great_expectations() -> None:
    classes = [one for one in vars(gxe).values() if isinstance(one, type) and issubclass(one, Expectation)]
    assert {one.expectation_type for one in classes if hasattr(one, "expectation_type")} >= SHOWN
