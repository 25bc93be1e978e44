"""The demo's last page: its verdict is the check's, and its question is answered from the lake's files alone."""

from __future__ import annotations

import io
from collections import Counter
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from rich.console import Console

from contract import pipeline as pipeline_file
from contract.pipeline import Pipeline
from contract.status import LakeStatus, TableStatus
from stack.demo import lake_query, report
from stack.demo.journey import Facts
from stack.platform import Ports

EXAMPLE = Path(__file__).parents[3] / "pipelines" / "flights.yaml"
DAY = date(2014, 1, 1)


@pytest.fixture
def pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    monkeypatch.setenv("HEADRACE_MYSQL_PASSWORD", "x")
    monkeypatch.setenv("HEADRACE_LAKE", str(tmp_path))
    flights = {
        "carrier": ["UA", "UA", "AA", "AA"], "arr_delay": [10, None, 4, 99], "tailnum": ["N1", "N2", "N3", "N4"],
        "year": [2014, 2014, 2014, 2013], "month": [1, 1, 1, 1], "day": [1, 1, 1, 1],
    }  # fmt: skip
    airlines = {"carrier": ["UA", "AA"], "name": ["United", "American"]}
    for table, rows in (("flights", flights), ("airlines", airlines)):
        pl.DataFrame(rows).write_delta(tmp_path / "flights" / "nycflights" / table)
    return pipeline_file.load(EXAMPLE)


def journey(pipeline: Pipeline, **check: Any) -> Any:
    checked = {"source_count": 4, "lake_count": 4, "equal": True, "boundary": "u:1-9", "reason": None, **check}
    checked["oldest_read"] = "2026-01-01T18:09:54Z"
    table = TableStatus(db="nycflights", table="flights", rows=4, changes=7, freshness_ms=1)
    status = LakeStatus(
        pipeline="flights", run=2, written_at=1, seconds=1.0, checkpoint=None, changes_version=1,
        tables={"nycflights.flights": table},
    )  # fmt: skip
    facts = Facts(resumed={"file": "binlog.000002", "pos": 4}, merges=[(3, 40.0), (4, 30.0)])
    facts.checks = {
        "tables": {"nycflights.flights": checked},
        "expectations": {"ok": check.get("met", True), "tables": {"nycflights.flights": {"evaluated": 5}}},
    }
    replay = SimpleNamespace(
        changes=Counter({("flights", "insert"): 7}), total=7, seconds=1.0, transactions=3, rolled_back=1,
        column="gate", days=[DAY],
    )  # fmt: skip
    platform = SimpleNamespace(
        airflow=SimpleNamespace(url="http://a"),
        streamer=SimpleNamespace(url="http://s"),
        mysql=SimpleNamespace(address="m:1", home=Path("/m")),
        ports=Ports(streamer=29181),
    )
    return SimpleNamespace(
        pipeline=pipeline, facts=facts, replay=replay, platform=platform, airflow=platform.airflow, lake=lambda: status
    )


def shown(way: Any) -> tuple[bool, str]:
    out = io.StringIO()
    good = report.show(Console(file=out, width=120), way, 2**30, 61.0)
    return good, out.getvalue()


def test_the_last_line_counts_tables_rows_and_changes(pipeline: Pipeline) -> None:
    good, page = shown(journey(pipeline))
    assert good
    assert page.splitlines()[-1] == "demo: ok, 1 tables equal as of 18:09:54 UTC, 4 rows; 7 changes by now"
    assert "/m/headrace.password) HEADRACE_STREAMER_PORT=29181 .venv/bin/headrace status" in " ".join(page.split())
    for words in ("http://a", "http://s", "binlog.000002:4", "`gate`", "1 rolled back", "1 min 1 s"):
        assert words in page


def test_an_unequal_table_fails_the_demo_and_is_named(pipeline: Pipeline) -> None:
    good, page = shown(journey(pipeline, equal=False, reason="2 rows differ"))
    assert not good
    assert "2 rows differ" in page
    assert page.splitlines()[-1].startswith("demo: failed, 0 of 1 tables equal")


def test_an_expectation_that_is_not_met_fails_the_demo(pipeline: Pipeline) -> None:
    good, page = shown(journey(pipeline, met=False))
    assert not good
    assert "demo: failed" in page


def test_the_question_is_answered_for_the_replayed_days(pipeline: Pipeline) -> None:
    answer = lake_query.ask(pipeline, [DAY])
    assert answer.rows == [("United", 2, 10.0, 2), ("American", 1, 4.0, 1)]
    assert answer.flights == 4
