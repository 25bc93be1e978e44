"""What the latency bench prints of its figures."""

from __future__ import annotations

from bench.latency import Mark, by_second, told


def test_percentiles_are_of_all_that_was_seen() -> None:
    assert told("at_least_once", [n / 100 for n in range(1, 1001)]) == (
        "at_least_once: p50 5.00 ms, p99 9.91 ms, p99.9 10.00 ms of 1,000"
    )


def test_of_few_the_worst_is_told_instead_of_a_percentile() -> None:
    assert told("idle", [3.0, 1.0, 2.0]) == "idle: p50 2.00 ms, at most 3.00 ms of 3"


def test_a_second_in_which_all_stood_still_is_told_from_a_tail_that_is_always_there() -> None:
    marks = []
    for second in range(5):
        for n in range(100):
            sent = 1e15 + second * 1e6 + n * 1e4
            late = 400_000 if second == 3 and n >= 50 else 1_000
            marks.append(Mark(sent, sent + 500, sent + 500 + late))
    assert by_second(marks) == "p99 of a second: 1.00 ms in the middle, 400.00 ms in second 4"
