"""The supervisor's own Prometheus metrics, made when they are asked for."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from streamer.control.metrics import last_error
from streamer.supervisor.shown import WELL
from streamer.supervisor.unit import Unit

STATES = (
    "standby", "starting", "waiting", "streaming", "stopping", "unresponsive", "paused", "stopped", "failed",
    "restarting", "finished", "invalid",
)  # fmt: skip
ERROR = "1 for what ended a pipeline that does not run, or runs again; its kind, and its text as in log and API"


class UnitCollector(Collector):
    def __init__(self, units: list[Unit]) -> None:
        self._units = units

    def collect(self) -> Iterable[Metric]:
        text = "1 for the state that holds, as the supervisor sees it"
        states = GaugeMetricFamily("headrace_supervised_state", text, labels=["pipeline", "state"])
        restarts = CounterMetricFamily(
            "headrace_restarts", "Restarts after crashes since the supervisor's start", labels=["pipeline"]
        )
        for unit in self._units:
            now = unit.state
            for state in STATES:
                states.add_metric([unit.key, state], float(state == now))
            restarts.add_metric([unit.key], float(unit.restarts))
        yield states
        yield restarts
        errors = [(unit.key, unit.error) for unit in self._units if unit.state not in WELL]
        yield last_error("headrace_supervised_error", ERROR, errors)


def render(units: list[Unit]) -> bytes:
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    registry.register(UnitCollector(units))
    return generate_latest(registry)
