"""Days that their month does not have are allowed for the statements alone that name one, on MySQL."""

from __future__ import annotations

import pytest

from spark.source import no_days

NONE = "SELECT 1 FROM t WHERE d > '2026-02-30' and n > 5"


@pytest.mark.parametrize(
    "day", ["2026-02-29", "0000-02-29", "1900-02-29", "2024-02-30", "2026-04-31", "2026-11-31 10:00:00"]
)
def test_a_statement_that_names_one_is_told_so(day: str) -> None:
    asked = no_days.asked(NONE.replace("2026-02-30", day), "mysql")
    assert asked == f"SELECT /*+ SET_VAR(sql_mode = 'ALLOW_INVALID_DATES') */ {NONE[7:]}".replace("2026-02-30", day)


@pytest.mark.parametrize("day", ["2024-02-29", "2000-02-29", "2026-01-31", "0000-00-00", "2026-00-10", "2026-02-00"])
def test_any_other_is_asked_as_it_is(day: str) -> None:
    sql = NONE.replace("2026-02-30", day)
    assert no_days.asked(sql, "mysql") == sql


def test_nor_is_anything_else_changed() -> None:
    assert no_days.asked(NONE, "mariadb") == NONE, "which compares them in any session"
    assert no_days.asked("SET @a = '2026-02-30'", "mysql") == "SET @a = '2026-02-30'"
