"""The longest time between two runs of a schedule."""

from __future__ import annotations

from datetime import timedelta

import pytest

from contract.cron import PRESETS, check, longest


@pytest.mark.parametrize(
    ("schedule", "hours"),
    [
        ("* * * * *", 1 / 60), ("*/5 * * * *", 5 / 60), ("@hourly", 1), ("50 * * * *", 1), ("*/40 * * * *", 40 / 60),
        ("@daily", 24), ("0 3,4 * * *", 23), ("0 8-18 * * *", 14), ("0 8-18 * * mon-fri", 14 + 48), ("@weekly", 7 * 24),
        ("0 0 * * 0,7", 7 * 24), ("@monthly", 31 * 24), ("0 0 1,15 * *", 17 * 24), ("@quarterly", 92 * 24),
        ("@yearly", 366 * 24), ("0 0 29 2 *", 1461 * 24), ("0 0 1 * mon", 7 * 24), ("0 0 */2 * mon", 21 * 24),
    ],
)  # fmt: skip
def test_of_a_schedule(schedule: str, hours: float) -> None:
    assert longest(check(schedule)) == timedelta(hours=hours)


def test_each_word_is_a_schedule() -> None:
    assert [check(text) for text in PRESETS.values()] == [*PRESETS.values()]
