"""How the lake stands, as metrics: for who runs its jobs without Airflow, whose alerts nobody else gives.

In: its status (contract/status.py), where it can be read from here, and the streamer's own checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client.core import GaugeMetricFamily, Metric

from contract.checkpoint import Checkpoint
from contract.status import LakeStatus

COMPLETE = "Source time up to which the lake is complete, Unix time"
BEHIND = "1 while something was released that the lake does not have"
REFUSED = "1 while nothing is merged any more, until a person has mended what the lake's status tells"
FAULT = "1 for a table of the lake that wants a person, by what is wrong: the lake's status has the text"
FAULTS = ("stopped", "unequal", "stale", "outdated", "unread", "foreign")  # of TableStatus; `ahead` ends by itself


def lake_metrics(pipeline: str, lake: LakeStatus | None, own: Checkpoint | None) -> Iterator[Metric]:
    """Without values where no compaction has run yet, or the status cannot be read; without BEHIND too, where the
    streamer's `own` checkpoint is not known yet."""
    found = lake.checkpoint if lake else None
    complete = found.ts_ms / 1000 if found else None
    yield _gauge("headrace_lake_complete_to_timestamp_seconds", COMPLETE, pipeline, complete)
    behind = found.place < own.place if found and own else None
    yield _gauge("headrace_lake_behind", BEHIND, pipeline, behind)
    yield _gauge("headrace_lake_refused", REFUSED, pipeline, bool(lake.refused) if lake else None)
    faults = GaugeMetricFamily("headrace_lake_table_fault", FAULT, labels=["pipeline", "table", "fault"])
    for name, table in lake.tables.items() if lake else ():
        for fault in (one for one in FAULTS if getattr(table, one)):
            faults.add_metric([pipeline, name, fault], 1)
    yield faults


def _gauge(metric: str, text: str, pipeline: str, value: float | None) -> Metric:
    family = GaugeMetricFamily(metric, text, labels=["pipeline"])
    if value is not None:
        family.add_metric([pipeline], float(value))
    return family
