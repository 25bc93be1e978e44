"""The metrics of a running stream, and that each one is documented."""

from __future__ import annotations

import re
import threading
from collections import Counter
from pathlib import Path

import pytest

from contract.gtid import GtidSet
from streamer.control import metrics
from streamer.control.report import Report
from streamer.errors import UnreachableError
from streamer.patience import Stopping
from streamer.protocol.filters import Filters
from streamer.source import Facts
from tests.streamer.fakes import SOURCE, Binlog, pipeline, rig, transaction

FACTS = Facts(1, SOURCE, "9.7.4", GtidSet(), GtidSet(), "binlog.000001", 4, "binlog.000001")


def text() -> str:
    what = rig(Binlog([transaction(n, [3]) for n in range(1, 4)], ignored=Counter({"type 99": 2})))
    report = Report(pipeline(), what.status)
    assert 'headrace_state{pipeline="sales",state="starting"} 1.0' in metrics.render(report).decode()
    report.filters = Filters(drops=lambda db, table: {"ddl"})
    report.filters.drop("shop", "t", "ddl")
    report.filters.drop_rows("shop.t", "u", 6)
    report.attach(FACTS, what.stream, what.ledger, what.watcher, what.checkpoints, what.sink)  # type: ignore[arg-type]
    threading.Timer(0.3, what.stop.set).start()
    with pytest.raises(Stopping):
        what.stream.run()
    assert what.stream.delivery.drain(10)
    return metrics.render(report).decode()


def test_what_a_stream_has_done() -> None:
    shown = text()
    assert 'headrace_events_total{operation="create",pipeline="sales",table="shop.t"} 9.0' in shown
    assert 'headrace_released_events_total{pipeline="sales"} 9.0' in shown
    assert 'headrace_transactions_total{pipeline="sales"} 3.0' in shown
    assert 'headrace_ignored_events_total{kind="type 99",pipeline="sales"} 2.0' in shown
    assert 'headrace_dropped_total{kind="ddl",pipeline="sales",table="shop.t"} 1.0' in shown
    assert 'headrace_dropped_total{kind="update",pipeline="sales",table="shop.t"} 3.0' in shown
    assert 'headrace_passed_by_rows_events_total{pipeline="sales"} 0.0' in shown
    assert 'headrace_queue_events{pipeline="sales"} 0.0' in shown


def test_the_last_error_has_its_kind_and_the_text_that_the_status_shows() -> None:
    what = rig(Binlog([]))
    report = Report(pipeline(), what.status)
    assert "headrace_last_error_timestamp_seconds{" not in metrics.render(report).decode()
    what.status.note(UnreachableError("connect to", 'MySQL at "h"', "refused", "Start it."))
    told = what.status.as_dict()["last_error"]
    assert told["retryable"] is True
    shown = metrics.render(report).decode()
    message = told["message"].replace('"', '\\"')
    [line] = [line for line in shown.splitlines() if line.startswith("headrace_last_error")]
    name = f'headrace_last_error_timestamp_seconds{{kind="unreachable",message="{message}",pipeline="sales"}} '
    assert line.startswith(name)
    assert float(line.removeprefix(name)) == told["at"]


def test_every_metric_is_documented() -> None:
    documented = (Path(__file__).parents[3] / "docs" / "metrics.md").read_text()
    names = set(re.findall(r"^(headrace_\w+)", text(), re.MULTILINE))
    assert len(names) >= 15
    assert {name for name in names if f"`{name}`" not in documented} == set()


def test_a_streamer_that_stands_by_shows_nothing_of_the_stream_that_it_had() -> None:
    what = rig(Binlog([transaction(1, [3])]))
    report = Report(pipeline(), what.status)
    report.attach(FACTS, what.stream, what.ledger, what.watcher, what.checkpoints, what.sink)  # type: ignore[arg-type]
    report.filters = Filters(drops=lambda db, table: {"ddl"})
    assert "queue" in report.as_dict()
    report.detach()
    assert {"queue", "events", "checkpoint", "source"}.isdisjoint(report.as_dict())
    assert "headrace_lag_seconds{" not in metrics.render(report).decode()
