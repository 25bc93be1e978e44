"""Texts that a transform may put into a column, and those of which the lake would make nothing."""

from __future__ import annotations

import pytest

from contract.schema import Column
from contract.transform_values import form


@pytest.mark.parametrize(
    ("kind", "right", "wrong"),
    [
        (
            "date",
            ["2026-02-28", "0000-00-00", "2026-00-10", "0001-01-01"],
            ["***", "2026-02-30", "31.12.2026", "2026-13-00"],
        ),
        ("datetime", ["2026-01-01 10:00:00", "2026-01-01 23:59:59.999999"], ["2026-01-01", "2026-01-01 24:00:00"]),
        (
            "timestamp",
            ["2026-01-01T10:00:00Z", "2026-01-01T10:00:00.5Z", "0000-00-00 00:00:00"],
            ["2026-01-01T10:00:00"],
        ),
        ("time", ["-838:59:59.000001", "10:00:00"], ["10:00", "noon"]),
        ("blob", ["", "AAEC"], ["!!", "AAE"]),
        ("bit", ["AQ=="], ["1"]),
    ],
)
def test_a_text_is_of_its_type(kind: str, right: list[str], wrong: list[str]) -> None:
    fits = form(Column(name="c", type=kind))
    assert fits is not None
    assert [text for text in right if not fits(text)] == []
    assert [text for text in wrong if fits(text)] == []


@pytest.mark.parametrize(
    ("precision", "scale", "right", "wrong"),
    [
        (10, 2, ["1.50", "-12345678.99", "007", "0"], ["1.505", "123456789.0", "abc", "1e3", "", "1."]),
        (5, 0, ["12345", "-1"], ["123456", "1.0"]),
        (2, 2, ["0.99", "-0.01"], ["1.00"]),
    ],
)
def test_a_decimal_has_room_in_its_column(precision: int, scale: int, right: list[str], wrong: list[str]) -> None:
    fits = form(Column(name="c", type="decimal", precision=precision, scale=scale))
    assert fits is not None
    assert [text for text in right if not fits(text)] == []
    assert [text for text in wrong if fits(text)] == []


def test_any_text_is_a_text() -> None:
    assert form(Column(name="c", type="varchar")) is None
