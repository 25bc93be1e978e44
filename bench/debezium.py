"""Debezium as one of the programs: default or tuned; cold, in a process that has just started, and warm, in the same
process over the same binlog again, when the JVM has compiled what is hot.

Its clock runs from the arrival of the first record at the broker to that of the last, which leaves its start out.
"""

from __future__ import annotations

import time
from pathlib import Path

from bench.arrivals import Arrivals
from bench.figures import Run, cpu_seconds, peak_mb
from bench.load import Begin, begin
from stack.database import Database
from stack.debezium import TUNED, Debezium, connector
from stack.kafka import Kafka
from stack.ports import free_port

HEAP = "-Xmx1g"
IDLE_SECONDS = 3.0


class DebeziumPeer:
    """Made while the table is empty: its first start takes down the table's shape."""

    def __init__(self, database: Database, kafka: Kafka, folder: Path, tuned: bool) -> None:
        self.name = "tuned" if tuned else "default"
        prefix = f"debezium-{self.name}"
        self._partition = {"server": prefix}
        self._arrivals = Arrivals(kafka, f"{prefix}.bench.orders")
        settings = connector(database, kafka, prefix, r"bench\..*", TUNED if tuned else {})
        self._worker = Debezium(folder / prefix, free_port(), kafka, {"bench": settings}, (HEAP,))
        self._worker.start()
        self._leave_at(begin(database))
        self._worker.start()
        time.sleep(IDLE_SECONDS)
        self._start_cpu = cpu_seconds(self._worker.pid)
        self._worker.stop()

    def runs(self, start: Begin, events: int) -> tuple[Run, Run]:
        """Cold, warm."""
        self._set(start)
        offset = self._arrivals.end()
        self._worker.start()
        cold = self._measured(offset, events, self._start_cpu)
        self._ask("PUT", "stop")
        self._move(start)
        offset, before = self._arrivals.end(), cpu_seconds(self._worker.pid)
        self._ask("PUT", "resume")
        warm = self._measured(offset, events, before)
        self._leave_at(start)
        return cold, warm

    def _measured(self, offset: int, events: int, before: float) -> Run:
        seconds = self._arrivals.wait(offset, events, lambda: self._worker.pid is not None)
        return Run(events, seconds, cpu_seconds(self._worker.pid) - before, peak_mb(self._worker.pid))

    def _set(self, start: Begin) -> None:
        """Before a start: where it begins."""
        if start != self._left:
            self._worker.start()
            self._leave_at(start)

    def _leave_at(self, start: Begin) -> None:
        """Stops the worker; its next start begins at `start`."""
        self._ask("PUT", "stop")
        self._move(start)
        self._worker.stop()
        self._left = start

    def _move(self, start: Begin) -> None:
        offset = {"ts_sec": start.ts, "file": start.file, "pos": start.pos, "gtids": start.gtids}
        offsets = {"offsets": [{"partition": self._partition, "offset": offset}]}
        until = time.monotonic() + 30
        while True:
            try:  # refused until its task has ended
                self._worker.ask("PATCH", "/connectors/bench/offsets", offsets)
                return
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.3)

    def _ask(self, method: str, what: str) -> None:
        self._worker.ask(method, f"/connectors/bench/{what}")

    def close(self) -> None:
        self._worker.kill()
        self._arrivals.close()
