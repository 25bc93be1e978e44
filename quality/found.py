"""What an expectation found, without values of rows: an alert may go anywhere, and what is kept of it outlives the row.

In: a result of Great Expectations. Out: a dict of its parts. Pages of the check (data docs) show more; they stay beside
the results, and the table's next check replaces them.
"""

from __future__ import annotations

import re
from typing import Any

CALLING = "An error occurred while calling"  # how PySpark begins what Java says
# Those that observe a count, a share, a type or names of columns. Others observe values: a column's maximum is a row's.
SHOWN = {
    "expect_table_row_count_to_equal", "expect_table_row_count_to_be_between",
    "expect_table_row_count_to_equal_other_table", "expect_table_column_count_to_equal",
    "expect_table_column_count_to_be_between", "expect_table_columns_to_match_set",
    "expect_table_columns_to_match_ordered_list", "expect_column_type_to_be", "expect_column_values_to_be_of_type",
    "expect_column_values_to_be_in_type_list", "expect_column_unique_value_count_to_be_between",
    "expect_column_proportion_of_unique_values_to_be_between",
    "expect_column_proportion_of_non_null_values_to_be_between", "unexpected_rows_expectation",
}  # fmt: skip
COLUMNS = "expect_table_columns_to_match_set"
IN_PAGES = "what its page in the data docs shows"
# Spark's errors of this class have the value in their text, and so have some of MySQL's and MariaDB's.
ABOUT_VALUE = re.compile(r"SQLSTATE: 22|Incorrect \S+ value: '|Cannot convert string '")
NAMED = re.compile(r"\[[A-Z_.0-9]+\]")  # how each of them begins


def told(one: Any) -> dict[str, Any]:
    """One expectation and whether it held."""
    config, kwargs = one.expectation_config, one.expectation_config.kwargs
    columns = kwargs.get("column") or ", ".join(kwargs.get("column_list") or ())
    raised = _raised(one.exception_info or {})
    return {
        "ok": bool(one.success),
        "expectation": config.description or config.type,
        "column": columns or None,
        "observed": _observed(config.type, one.result or {}) if raised is None else raised,
        "expected": kwargs.get("value") if raised is None else None,
        "raised": raised is not None,
    }


def _observed(type: str, seen: dict[str, Any]) -> Any:
    if (count := seen.get("unexpected_count")) is not None:
        return f"{count} rows that break it"
    observed = seen.get("observed_value")
    if type == COLUMNS and (missing := ((seen.get("details") or {}).get("mismatched") or {}).get("missing")):
        return f"no column {', '.join(missing)}"
    return observed if observed is None or type in SHOWN else IN_PAGES


def _raised(info: dict[str, Any]) -> str | None:
    """The message of an expectation that could not be evaluated; GX nests it by metric."""
    infos = [info, *(value for value in info.values() if isinstance(value, dict))]
    raised = next((one for one in infos if one.get("raised_exception")), None)
    if raised is None:
        return None
    return reason(str(raised.get("exception_message")))


def reason(text: str, elsewhere: str = IN_PAGES) -> str:
    """The line of an error that says what it is. It goes to alerts: where it may have a row's value, `elsewhere`."""
    lines = [line.removeprefix(": ") for line in text.splitlines()]
    said = next((line for line in lines if line and not line.startswith(CALLING)), lines[0] if lines else "")
    return guarded(said, text, elsewhere)


def guarded(said: str, text: str, elsewhere: str) -> str:
    """What is `said` of an error, unless its whole `text` is one about a value: then its name, and `elsewhere`."""
    if not ABOUT_VALUE.search(text):
        return said
    named = NAMED.search(text)
    return f"{named[0] if named else 'an error about a value'}: {elsewhere}"
