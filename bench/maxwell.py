"""Maxwell as one of the programs: tuned, each run in a process that has just started."""

from __future__ import annotations

import time
from pathlib import Path

from bench.arrivals import Arrivals
from bench.figures import Run, cpu_seconds, peak_mb
from bench.load import Begin, begin
from stack.database import Database
from stack.kafka import Kafka
from stack.maxwell import Maxwell

IDLE_SECONDS = 3.0


class MaxwellPeer:
    """Made while the table is empty: its first start takes down the table's shape."""

    def __init__(self, database: Database, kafka: Kafka, folder: Path) -> None:
        topic = "maxwell-bench"
        self._arrivals = Arrivals(kafka, topic)
        self._program = Maxwell(folder / "maxwell", database, kafka, topic, "bench.orders")
        self._program.start()
        self._program.kill()
        place = begin(database)
        self._program.begin = f"{place.file}:{place.pos}"
        self._program.start()
        time.sleep(IDLE_SECONDS)
        self._start_cpu = cpu_seconds(self._program.pid)
        self._program.kill()

    def run(self, start: Begin, events: int) -> Run:
        self._program.begin = f"{start.file}:{start.pos}"
        offset = self._arrivals.end()
        self._program.start()
        seconds = self._arrivals.wait(offset, events, lambda: self._program.pid is not None)
        run = Run(events, seconds, cpu_seconds(self._program.pid) - self._start_cpu, peak_mb(self._program.pid))
        self._program.kill()
        return run

    def close(self) -> None:
        self._program.kill()
        self._arrivals.close()
