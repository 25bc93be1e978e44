"""What the latency bench prints of its figures."""

from __future__ import annotations

from bench.latency import told


def test_percentiles_are_of_all_that_was_seen() -> None:
    assert told("at_least_once", [n / 100 for n in range(1, 1001)]) == (
        "at_least_once: p50 5.00 ms, p99 9.91 ms, p99.9 10.00 ms of 1,000"
    )
