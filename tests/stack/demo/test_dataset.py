"""The data set: every row of the five tables, its NULLs, and keys that hold."""

from __future__ import annotations

import re

import pytest

from stack.demo import dataset

ROWS = {"airlines": 16, "airports": 1458, "planes": 3322, "weather": 26115, "flights": 336776}
KEYS = {
    "airlines": ("carrier",),
    "airports": ("faa",),
    "planes": ("tailnum",),
    "weather": ("origin", "time_hour"),
    "flights": ("year", "month", "day", "carrier", "flight", "origin", "sched_dep_time"),
}


@pytest.mark.parametrize("table", dataset.TABLES)
def test_every_row_is_read_and_its_key_is_its_own(table: str) -> None:
    columns, rows = dataset.read(table)
    where = [columns.index(name) for name in KEYS[table]]
    found = list(rows)
    assert len(found) == ROWS[table]
    keys = {tuple(row[at] for at in where) for row in found}
    assert len(keys) == len(found)
    assert not any(None in key for key in keys)


def test_missing_values_are_null_and_digits_are_kept() -> None:
    columns, rows = dataset.read("weather")
    first = dict(zip(columns, next(rows), strict=True))
    assert first["wind_gust"] is None
    assert first["wind_speed"] == "10.357019999999999"
    assert first["time_hour"] == "2013-01-01 06:00:00"


def test_the_schema_has_every_column_of_the_files() -> None:
    tables = dict(re.findall(r"CREATE TABLE (\w+) \((.*?)\n\);", dataset.SCHEMA.read_text(), re.DOTALL))
    assert set(tables) == set(dataset.TABLES)
    for table, body in tables.items():
        declared = re.findall(r"^  ([a-z_]+) [A-Z]", body, re.MULTILINE)
        assert [name for name in declared if name != "id"] == dataset.read(table)[0]


def test_text_with_separators_survives_as_one_field() -> None:
    assert dataset._line(["a\tb", None, "c\\d\n"]) == "a\\tb\t\\N\tc\\\\d\\n\n"
