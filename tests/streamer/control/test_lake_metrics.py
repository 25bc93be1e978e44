"""How the lake stands, for who has no Airflow: up to when it is complete, and what wants a person."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from contract.checkpoint import Checkpoint
from contract.status import LakeStatus, Stale, TableStatus
from streamer.control.lake_metrics import lake_metrics
from streamer.control.metrics import render
from streamer.control.report import Report
from tests.streamer.fakes import Binlog, checkpoint, rig
from tests.streamer.test_joined import in_lake, lake

STALE = Stale(kind="alter", since=(0, 1, 4), ts_ms=0, reason="altered")


def shown(lake: LakeStatus | None, own: Checkpoint | None) -> str:
    class Found:
        def collect(self) -> Any:
            return lake_metrics("sales", lake, own)

    registry = CollectorRegistry()
    registry.register(Found())  # type: ignore[arg-type]
    return generate_latest(registry).decode()


def status(at: Checkpoint | None, refused: str | None = None, **tables: TableStatus) -> LakeStatus:
    return LakeStatus(
        pipeline="sales", run=1, written_at=1, seconds=1, checkpoint=at, changes_version=1, refused=refused,
        tables={f"shop.{name}": table for name, table in tables.items()},
    )  # fmt: skip


@pytest.mark.parametrize(("own", "behind"), [(200, "0.0"), (300, "1.0")])
def test_it_is_behind_where_something_was_released_that_it_lacks(own: int, behind: str) -> None:
    at = checkpoint(pos=200).model_copy(update={"ts_ms": 1_700_000_000_500})
    told = shown(status(at), checkpoint(pos=own))
    assert f'headrace_lake_behind{{pipeline="sales"}} {behind}' in told
    assert 'headrace_lake_complete_to_timestamp_seconds{pipeline="sales"} 1.7000000005e+09' in told
    assert 'headrace_lake_refused{pipeline="sales"} 0.0' in told


@pytest.mark.parametrize(("lake", "own"), [(None, checkpoint(pos=200)), (status(None), checkpoint(pos=200))])
def test_of_a_lake_of_which_nothing_is_known_nothing_is_told(lake: LakeStatus | None, own: Checkpoint) -> None:
    told = shown(lake, own)
    assert "headrace_lake_behind{" not in told
    assert "# TYPE headrace_lake_behind gauge" in told
    assert "headrace_lake_complete_to_timestamp_seconds{" not in told


def test_each_fault_of_a_table_has_its_line_and_what_ends_by_itself_has_none() -> None:
    tables = {
        "a": in_lake(),
        "b": in_lake(ahead="a snapshot is ahead"),
        "c": in_lake(stopped="no key", stale=STALE),
    }
    told = shown(status(checkpoint(pos=200), refused="offsets were reset", **tables), checkpoint(pos=200))
    lines = [line for line in told.splitlines() if line.startswith("headrace_lake_table_fault{")]
    assert lines == [
        'headrace_lake_table_fault{fault="stopped",pipeline="sales",table="shop.c"} 1.0',
        'headrace_lake_table_fault{fault="stale",pipeline="sales",table="shop.c"} 1.0',
    ]
    assert 'headrace_lake_refused{pipeline="sales"} 1.0' in told


def test_the_streamer_tells_it_of_the_lake_of_its_pipeline(tmp_path: Path) -> None:
    found = lake(tmp_path, checkpoint(pos=90), in_lake(stopped="no key"))
    told = render(Report(found, rig(Binlog([])).status)).decode()
    assert 'headrace_lake_table_fault{fault="stopped",pipeline="sales",table="shop.u"} 1.0' in told
    assert "headrace_lake_behind{" not in told, "the streamer has no checkpoint yet"
