"""`headrace run` as one of the programs.

Its clock begins as the others' does, when its first record arrives at the broker, and ends later than theirs: at the
time in the checkpoint that covers the last row. What a start costs by itself is measured too, and taken off the CPU
seconds.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from bench.arrivals import Arrivals
from bench.figures import Run, peak_mb
from bench.load import begin
from contract.checkpoint import Checkpoint
from contract.pipeline import load
from stack.database import Database
from stack.kafka import Kafka
from stack.ports import free_port
from streamer.checkpoints.kafka import read_checkpoint
from streamer.kafka.topics import provision

ROOT = Path(__file__).parents[1]
PATIENCE_SECONDS = 300
PIPELINE = """\
format: 1
name: {name}
source: {{host: 127.0.0.1, port: {port}, user: headrace, password: "${{BENCH_PASSWORD}}", server_id: {server_id}}}
tables: {{include: ["bench.*"]}}
kafka: {{bootstrap: "{kafka}", partitions: 1, linger_ms: {linger}}}
streamer: {{delivery: {delivery}, start: "{start}", http: {{port: {http}}}}}
lake: {{path: unused}}
"""


class Headrace:
    def __init__(self, database: Database, kafka: Kafka, folder: Path, linger: float) -> None:
        self._database, self._kafka, self._folder, self._linger = database, kafka, folder, linger
        self._number = 0
        self.start_cpu_seconds = self._run(begin(database).gtids, 0, "at_least_once", None).cpu_seconds

    def run(self, start: str, events: int, delivery: str = "at_least_once", core: int | None = None) -> Run:
        """From the GTID set `start` until `events` are released, then SIGTERM. `core`: the one it may use."""
        found = self._run(start, events, delivery, core)
        return Run(events, found.seconds, found.cpu_seconds - self.start_cpu_seconds, found.resident_mb)

    def _run(self, start: str, events: int, delivery: str, core: int | None) -> Run:
        self._number += 1
        name = f"{self._database.name}-{self._number}"
        file, log = self._folder / f"{name}.yaml", self._folder / f"{name}.log"
        values: dict[str, object] = {
            "port": self._database.port,
            "kafka": self._kafka.address,
            "start": start,
            "delivery": delivery,
        }
        values |= {"linger": self._linger}
        file.write_text(PIPELINE.format(name=name, server_id=free_port(), http=free_port(), **values))
        os.environ["BENCH_PASSWORD"] = self._database.password
        arrivals = Arrivals(self._kafka, f"{name}.bench.orders")
        provision(load(file), [("bench", "orders")])
        pin: Callable[[], None] | None = (lambda: os.sched_setaffinity(0, {core})) if core is not None else None
        with log.open("wb") as out:
            command = [sys.executable, "-m", "streamer.cli", "run", "--log", "json", str(file)]
            process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=out, preexec_fn=pin)
        last = self._released(file, process, events, log)
        peak = peak_mb(process.pid)
        process.send_signal(signal.SIGTERM)
        _, _, usage = os.wait4(process.pid, 0)
        seconds = last.written_at / 1000 - arrivals.first() if events else 0
        arrivals.close()
        return Run(events, seconds, usage.ru_utime + usage.ru_stime, peak)

    def _released(self, file: Path, process: subprocess.Popen[bytes], events: int, log: Path) -> Checkpoint:
        pipeline = load(file)
        until = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < until and process.poll() is None:
            checkpoint = read_checkpoint(pipeline)
            if checkpoint is not None and checkpoint.events >= events and "streaming" in log.read_text():
                return checkpoint
            time.sleep(0.5)
        raise SystemExit(f"the streamer did not deliver {events} events; its log:\n{log.read_text()[-4000:]}")
