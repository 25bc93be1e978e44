"""Figures of several runs: medians, and how they stand against the goals."""

from __future__ import annotations

import pytest

from bench.figures import Run, Runs, goals, result


def runs(seconds: float, cpu: float) -> Runs:
    of = [Run(1_000_000, seconds * factor, cpu * factor, 100 * factor) for factor in (1, 0.5, 9)]
    return {"bulk": of, "single": of}


def test_a_figure_is_the_median_of_its_runs() -> None:
    found = result({"headrace": runs(2, 4)})["headrace"]
    assert found["bulk_per_second"] == 500_000
    assert found["single_cpu_seconds_per_million"] == 4
    assert found["peak_resident_mb"] == 100
    assert len(found["runs"]["bulk"]) == 3


def test_goals_are_counted_against_each_program_on_its_own_server() -> None:
    programs = {
        "headrace": runs(1, 1),
        "Debezium, tuned, warm": runs(7, 4),
        "headrace, MySQL 8.0": runs(2, 1),
        "Maxwell, tuned, cold, MySQL 8.0": runs(3, 3),
    }
    found = {(figure, name): (ratio, wanted) for figure, name, ratio, wanted in goals(result(programs), "headrace")}
    assert found["bulk_per_second", "Debezium, tuned, warm"] == (pytest.approx(7), 6)
    assert found["bulk_cpu_seconds_per_million", "Debezium, tuned, warm"] == (pytest.approx(4), 8)
    assert found["single_per_second", "Maxwell, tuned, cold, MySQL 8.0"] == (pytest.approx(1.5), 1)
