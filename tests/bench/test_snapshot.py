"""What is told of a snapshot's speed: medians, beside the reader alone on the large table."""

from __future__ import annotations

import pytest

from bench.snapshot import READERS, pipeline, told


def test_the_ratio_is_of_both_steps_on_the_large_table() -> None:
    alone = [{"rows": 1000, "seconds": seconds, "peak_mb": 700.0} for seconds in (1.0, 1.0, 9.0)]
    ours = [{"rows": 1000, "seconds": 2.0, "staging": 1.25, "peak_mb": 800.0}]
    runs = {("JDBC reader alone", "orders"): alone, ("snapshot", "orders"): ours}
    assert "| JDBC reader alone | 1,000 | 1,000 |  | 700 |" in told(runs)
    assert "| snapshot | 1,000 | 500 | 800 | 800 |" in told(runs)
    assert told(runs).endswith("of the JDBC reader's rate: 50% (staging 80%); goal 60%")


def test_its_pipeline_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_PASSWORD", "secret")
    assert pipeline(3306, "/lake").snapshot.parallelism == READERS
