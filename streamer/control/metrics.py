"""Prometheus metrics, made from the status when they are asked for: the stream pays nothing for them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from contract.status import LakeStatus
from streamer.control.lake_metrics import lake_metrics
from streamer.control.report import Report

STATES = ("standby", "starting", "waiting", "streaming", "stopping", "stopped", "failed")
OPERATIONS = {"c": "create", "u": "update", "d": "delete"}
# name, help, path in the status
GAUGES = (
    ("headrace_lag_seconds", "Now minus the last released transaction's commit time", ("lag_seconds",)),
    ("headrace_lag_bytes", "Bytes of the server's binlog that are not delivered yet", ("lag_bytes",)),
    ("headrace_rate_events_per_second", "Released events, last ten seconds", ("rate_events_per_second",)),
    ("headrace_queue_events", "Events waiting for their release", ("queue", "events")),
    ("headrace_queue_bytes", "Bytes waiting for their release", ("queue", "bytes")),
    ("headrace_queue_oldest_age_seconds", "Age of the oldest waiting event", ("queue", "oldest_age_seconds")),
    ("headrace_checkpoint_age_seconds", "Since the last durable checkpoint", ("checkpoint", "age_seconds")),
    ("headrace_checkpoint_position_bytes", "Binlog position of the checkpoint in its file", ("checkpoint", "pos")),
    ("headrace_source_connected", "1 while the binlog dump runs", ("source", "connected")),
    ("headrace_pipeline_file_pending", "1 while the pipeline file is not followed as it is", ("tables", "pending")),
    ("headrace_sink_healthy", "1 while every sink answers", ("sink", "healthy")),
)
COUNTERS = (
    ("headrace_transactions", "Transactions read", ("transactions_read",)),
    ("headrace_sent_bytes", "Bytes of the values sent", ("bytes_sent",)),
    ("headrace_source_reconnects", "Lost binlog connections", ("source", "reconnects")),
    (
        "headrace_passed_by_rows_events",
        "Rows events since this start of tables that take no part",
        ("filtered", "rows_events_of_other_tables"),
    ),
    ("headrace_released_events", "Events released since the pipeline's first start", ("events", "released")),
)
LAST_ERROR = "When the last error was met, Unix time; its kind, and its text as in log and status"
MESSAGE = 1_000  # characters of a text, of which one with a GTID set may have thousands
BY_KIND = (
    ("headrace_ddl", "DDL since this start that changed rows without row events", ("ddl", "counts")),
    (
        "headrace_ignored_events",
        "Binlog events of unknown kinds that may be passed by, since this start",
        ("ignored_events",),
    ),
)

BY_TABLE = (
    ("headrace_put_aside", "Records since this start that were too large for Kafka and were put aside", "put_aside"),
    ("headrace_bent_values", "Values since this start that have no room in Debezium's form of records", "bent"),
)
NULLED = "Values since the first compaction that the lake's types cannot hold, and that are null there"


class StatusCollector(Collector):
    def __init__(self, report: Report) -> None:
        self._report = report

    def collect(self) -> Iterable[Metric]:
        status = self._report.as_dict()
        name = status["pipeline"]
        yield _state(name, status["state"])
        for metric, text, path in GAUGES:
            if (value := _at(status, path)) is not None:
                gauge = GaugeMetricFamily(metric, text, labels=["pipeline"])
                gauge.add_metric([name], float(value))
                yield gauge
        for metric, text, path in COUNTERS:
            if (value := _at(status, path)) is not None:
                counter = CounterMetricFamily(metric, text, labels=["pipeline"])
                counter.add_metric([name], float(value))
                yield counter
        yield last_error("headrace_last_error_timestamp_seconds", LAST_ERROR, [(name, status["last_error"])], "at")
        yield from _sinks(name, status.get("sinks", []))
        yield _events(name, _at(status, ("events", "tables")) or {})
        yield _dropped(name, _at(status, ("filtered", "tables")) or {})
        for metric, text, key in BY_TABLE:
            yield _by_table(metric, text, name, _at(status, (key,)) or {})
        lake = self._report.lake()
        yield _by_table("headrace_nulled_values", NULLED, name, _nulled(lake))
        yield from lake_metrics(name, lake, self._report.checkpoint())
        yield _transformed(name, _at(status, ("transformed",)) or {})
        for metric, text, path in BY_KIND:
            yield _by_kind(metric, text, name, _at(status, path) or {})


def render(report: Report) -> bytes:
    """The text that `/metrics` serves."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(StatusCollector(report))
    return generate_latest(registry)


def last_error(metric: str, text: str, errors: Iterable[tuple[str, Any]], value: str | None = None) -> Metric:
    """`errors`: pipelines and the last error of each, with its kind and text. `value`: of its keys; 1 without."""
    family = GaugeMetricFamily(metric, text, labels=["pipeline", "kind", "message"])
    for pipeline, error in errors:
        if error:
            family.add_metric([pipeline, error["kind"], error["message"][:MESSAGE]], error[value] if value else 1)
    return family


def _state(pipeline: str, state: str) -> Metric:
    family = GaugeMetricFamily("headrace_state", "1 for the state that holds", labels=["pipeline", "state"])
    for known in STATES:
        family.add_metric([pipeline, known], float(known == state))
    return family


def _sinks(pipeline: str, sinks: list[dict[str, Any]]) -> Iterable[Metric]:
    for metric, text, key in (
        ("headrace_sink_up", "1 while the sink answers", "healthy"),
        ("headrace_sink_waiting_events", "Records that the sink has not made durable", "waiting_events"),
        ("headrace_sink_lag_seconds", "For how long the oldest of them has waited", "lag_seconds"),
    ):
        family = GaugeMetricFamily(metric, text, labels=["pipeline", "sink"])
        for sink in sinks:
            family.add_metric([pipeline, sink["title"]], float(sink[key]))
        yield family


def _events(pipeline: str, tables: dict[str, dict[str, int]]) -> Metric:
    labels = ["pipeline", "table", "operation"]
    family = CounterMetricFamily("headrace_events", "Events sent since this start", labels=labels)
    for table, counts in tables.items():
        for operation, count in counts.items():
            family.add_metric([pipeline, table, OPERATIONS[operation]], float(count))
    return family


def _dropped(pipeline: str, tables: dict[str, dict[str, int]]) -> Metric:
    text = "Rows and DDL since this start that the pipeline file leaves out of a table's changes"
    family = CounterMetricFamily("headrace_dropped", text, labels=["pipeline", "table", "kind"])
    for table, counts in tables.items():
        for kind, count in counts.items():
            family.add_metric([pipeline, table, kind], float(count))
    return family


def _by_table(metric: str, text: str, pipeline: str, tables: dict[str, int]) -> Metric:
    family = CounterMetricFamily(metric, text, labels=["pipeline", "table"])
    for table, count in tables.items():
        family.add_metric([pipeline, table], float(count))
    return family


def _nulled(lake: LakeStatus | None) -> dict[str, int]:
    return {name: table.nulled for name, table in lake.tables.items() if table.nulled} if lake else {}


def _transformed(pipeline: str, tables: dict[str, dict[str, int]]) -> Metric:
    text = "Changes since this start that a transform took: changed, dropped, removed, dead_letter, passed"
    family = CounterMetricFamily("headrace_transformed", text, labels=["pipeline", "table", "outcome"])
    for table, counts in tables.items():
        for outcome, count in counts.items():
            family.add_metric([pipeline, table, outcome], float(count))
    return family


def _by_kind(metric: str, text: str, pipeline: str, counts: dict[str, int]) -> Metric:
    family = CounterMetricFamily(metric, text, labels=["pipeline", "kind"])
    for kind, count in counts.items():
        family.add_metric([pipeline, kind], float(count))
    return family


def _at(status: dict[str, Any], path: tuple[str, ...]) -> Any:
    value: Any = status
    for step in path:
        value = (value or {}).get(step)
    return value
