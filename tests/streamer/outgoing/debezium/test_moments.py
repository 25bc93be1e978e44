"""Dates and times as Debezium's numbers and ISO texts; what it has none for is None."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.outgoing.debezium import moments


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1970-01-01", 0), ("1969-12-31", -1), ("2024-02-29", 19782), ("9999-12-31", 2932896), ("0001-01-01", -719162),
        ("0000-03-01", -719468), ("0000-00-00", None), ("2024-00-10", None), ("2024-02-00", None), ("2023-02-29", None),
    ],
)  # fmt: skip
def test_a_date_is_days(text: str, expected: int | None) -> None:
    assert moments.days(text) == expected
    assert moments.iso_date(text) == (None if expected is None else f"{text}Z")


@given(st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31)))
def test_a_moment_is_what_python_makes_of_it(moment: datetime) -> None:
    text = f"{moment:%H:%M:%S.%f}"
    text = f"{moment.year:04}-{moment.month:02}-{moment.day:02} {text}"
    expected = (moment.replace(tzinfo=UTC) - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
    assert moments.micros(text) == expected
    assert moments.millis(text) == expected // 1000


def test_a_moment_of_no_day_is_none() -> None:
    for made in (moments.micros, moments.millis, moments.iso_datetime):
        assert made("0000-00-00 00:00:00.5") is None
    assert moments.zoned("0000-00-00T00:00:00Z") is None


@pytest.mark.parametrize(
    ("text", "micros", "millis", "iso"),
    [
        ("12:34:56", 45_296_000_000, 45_296_000, "12:34:56Z"),
        ("00:00:00.500", 500_000, 500, "00:00:00.5Z"),
        ("23:59:59.999999", 86_399_999_999, 86_399_999, "23:59:59.999999Z"),
        ("24:00:00", 86_400_000_000, 86_400_000, None),
        ("-00:00:00.000001", -1, None, None),
        ("-838:59:59", -3_020_399_000_000, None, None),
    ],
)
def test_a_time_is_a_span_or_a_time_of_a_day(text: str, micros: int, millis: int | None, iso: str | None) -> None:
    assert (moments.of_time(text), moments.millis_of_day(text), moments.iso_time(text)) == (micros, millis, iso)


def test_an_iso_moment_has_no_zeros_at_its_end() -> None:
    assert moments.iso_datetime("2026-01-01 10:00:00.500") == "2026-01-01T10:00:00.5Z"
    assert moments.iso_datetime("2026-01-01 10:00:00.000") == "2026-01-01T10:00:00Z"
    assert moments.zoned("2026-01-01T10:00:00.500Z") == "2026-01-01T10:00:00.500Z"
