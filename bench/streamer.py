"""How fast the streamer carries a binlog to a real Kafka: rows a second of bulk inserts, transactions a second of
single-row updates, CPU seconds a million rows, and resident memory. `make bench-streamer`.

The binlog is written first, then read by `headrace run`, pinned to one core; the servers have the others. What a
start costs by itself is measured too and taken off the CPU seconds. The clock runs from the line `streaming` in the
log to the time in the checkpoint that covers the last row. Results go to bench/out/streamer.json.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import peers
from contract.checkpoint import Checkpoint
from contract.pipeline import load
from stack.kafka import Kafka
from stack.mysql import MySQL
from stack.ports import free_port
from streamer.checkpoints.kafka import read_checkpoint
from streamer.topics import provision

ROOT = Path(__file__).parents[1]
OUT = ROOT / "bench" / "out" / "streamer.json"
BULK = 500  # rows an insert statement
PATIENCE_SECONDS = 300
TABLE = """
CREATE TABLE bench.orders (
  id BIGINT NOT NULL PRIMARY KEY, customer INT UNSIGNED NOT NULL, status ENUM('new','paid','sent') NOT NULL,
  amount DECIMAL(10,2) NOT NULL, note VARCHAR(100), created DATETIME NOT NULL, changed TIMESTAMP(3) NULL, ratio DOUBLE)
"""
PIPELINE = """\
format: 1
name: {name}
source: {{host: 127.0.0.1, port: {mysql}, user: headrace, password: "${{BENCH_PASSWORD}}", server_id: {server_id}}}
tables: {{include: ["bench.*"]}}
kafka: {{bootstrap: "{kafka}"}}
streamer: {{start: "{start}", http: {{port: {http}}}}}
lake: {{path: unused}}
"""


@dataclass(frozen=True)
class Run:
    """`events` in `seconds` of the clock. `cpu_seconds`: of the process, its start included. `resident_mb`: peak."""

    events: int
    seconds: float
    cpu_seconds: float
    resident_mb: float


class Bench:
    def __init__(self, mysql: MySQL, kafka: Kafka, folder: Path, core: int | None) -> None:
        self.mysql, self._kafka, self._folder, self._core = mysql, kafka, folder, core

    def gtids(self) -> str:
        with self.mysql.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT @@global.gtid_executed")
            return str(cursor.fetchone()[0]).replace("\n", "")

    def bulk(self, rows: int) -> str:
        """Makes the table and writes the bulk inserts; the GTID set before them."""
        with self.mysql.connect() as connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE bench")
            cursor.execute(TABLE)
            before = self.gtids()
            for first in range(0, rows, BULK):
                cursor.execute(f"INSERT INTO bench.orders VALUES {','.join(map(row, range(first, first + BULK)))}")
        return before

    def updates(self, count: int) -> str:
        """Writes the single-row transactions; the GTID set before them."""
        before = self.gtids()
        with self.mysql.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT COUNT(*) FROM bench.orders")
            rows = cursor.fetchone()[0]
            for n in range(count):
                cursor.execute(f"UPDATE bench.orders SET amount = amount + 1, status = 'sent' WHERE id = {n % rows}")
        return before

    def run(self, name: str, start: str, events: int) -> Run:
        """`headrace run` from `start` until `events` are released, then SIGTERM."""
        file, log = self._folder / f"{name}.yaml", self._folder / f"{name}.log"
        file.write_text(
            PIPELINE.format(
                name=name,
                mysql=self.mysql.port,
                kafka=self._kafka.address,
                server_id=free_port(),
                start=start,
                http=free_port(),
            )
        )
        os.environ["BENCH_PASSWORD"] = self.mysql.password
        provision(load(file), [("bench", "orders")])
        core = self._core
        pin: Callable[[], None] | None = (lambda: os.sched_setaffinity(0, {core})) if core is not None else None
        with log.open("wb") as out:
            command = [sys.executable, "-m", "streamer.cli", "run", "--log", "json", str(file)]
            process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=out, preexec_fn=pin)
        last = self._released(file, process, events, log)
        process.send_signal(signal.SIGTERM)
        _, _, usage = os.wait4(process.pid, 0)
        began = next(stamp for stamp, event in _lines(log) if event == "streaming")
        seconds = last.written_at / 1000 - began
        return Run(events, seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024)

    def _released(self, file: Path, process: subprocess.Popen[bytes], events: int, log: Path) -> Checkpoint:
        pipeline = load(file)
        until = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < until and process.poll() is None:
            checkpoint = read_checkpoint(pipeline)
            if checkpoint is not None and checkpoint.events >= events and "streaming" in log.read_text():
                return checkpoint
            time.sleep(0.5)
        raise SystemExit(f"the streamer did not deliver {events} events; its log:\n{log.read_text()[-4000:]}")


def row(n: int) -> str:
    status = ("new", "paid", "sent")[n % 3]
    return (
        f"({n}, {n % 9973}, '{status}', {n % 1000}.{n % 90 + 10}, 'order {n} of a customer who writes notes', "
        f"'2026-01-{n % 28 + 1:02} 10:00:00', '2026-01-{n % 28 + 1:02} 10:00:00.{n % 1000:03}', {n / 7})"
    )


def _lines(log: Path) -> Iterator[tuple[float, str]]:
    for line in log.read_text().splitlines():
        if line.startswith("{"):
            entry = json.loads(line)
            yield datetime.fromisoformat(entry["timestamp"]).timestamp(), entry["event"]


def measure(bench: Bench, rows: int, updates: int, repeat: int, peer: bool) -> dict[str, Any]:
    """Each binlog part is read right after it was written, so that a run ends at the part's end."""
    idle = bench.run("idle", bench.gtids(), 0)
    parts: dict[str, list[Run]] = {}
    rival: dict[str, dict[str, float]] = {}
    for part, count, write in (("bulk", rows, bench.bulk), ("single", updates, bench.updates)):
        console.print(f"{part}: writing {count:,} rows, then streaming them {repeat} times ...")
        before = write(count)
        parts[part] = [bench.run(f"{part}{n}", before, count) for n in range(repeat)]
        if peer:
            rival[part] = peers.mysql_replication(bench.mysql, before, count)
    result: dict[str, Any] = {"headrace": figures({part: best(runs, idle) for part, runs in parts.items()})}
    result["headrace"]["peak_resident_mb"] = max(run.resident_mb for runs in parts.values() for run in runs)
    result["headrace"]["start_cpu_seconds"] = idle.cpu_seconds
    if peer:
        result["python-mysql-replication, rows only"] = figures(rival)
    result["runs"] = {part: [asdict(run) for run in runs] for part, runs in parts.items()}
    return result


def best(runs: list[Run], idle: Run) -> dict[str, float]:
    """Of the repetitions: other work on the machine only ever makes one slower."""
    events = runs[0].events
    cpu = min(run.cpu_seconds for run in runs) - idle.cpu_seconds
    return {"per_second": events / min(run.seconds for run in runs), "cpu_seconds_per_million": cpu / events * 1e6}


def figures(parts: dict[str, dict[str, float]]) -> dict[str, float]:
    bulk, single = parts["bulk"], parts["single"]
    return {
        "bulk_rows_per_second": bulk["per_second"],
        "single_row_transactions_per_second": single["per_second"],
        "cpu_seconds_per_million_bulk_rows": bulk["cpu_seconds_per_million"],
        "cpu_seconds_per_million_transactions": single["cpu_seconds_per_million"],
    }


def show(result: dict[str, Any]) -> None:
    table = Table("program", box=None)
    for name in ("bulk rows/s", "single-row tx/s", "CPU s/million rows", "CPU s/million tx", "peak MB"):
        table.add_column(name, justify="right")
    for program, figures in result.items():
        if program in ("runs", "machine"):
            continue
        keys = (
            "bulk_rows_per_second", "single_row_transactions_per_second", "cpu_seconds_per_million_bulk_rows",
            "cpu_seconds_per_million_transactions", "peak_resident_mb",
        )  # fmt: skip
        table.add_row(program, *(f"{figures[key]:,.1f}" if key in figures else "-" for key in keys))
    console.print(table)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.streamer", description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--rows", type=int, default=300_000, help="bulk rows, a multiple of 500")
    parser.add_argument("--updates", type=int, default=50_000, help="single-row transactions")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)), help="the streamer's core; -1: all")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each part; the best one counts")
    parser.add_argument("--peer", action="store_true", help="read the same binlog with python-mysql-replication too")
    return parser.parse_args()


def main() -> None:
    chosen = arguments()
    logging.basicConfig(level=logging.WARNING)
    with ExitStack() as running:
        folder = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="headrace-bench-")))
        mysql, kafka = MySQL(folder / "mysql", free_port()), Kafka(folder / "kafka", free_port(), free_port())
        for server in (mysql, kafka):
            server.start()
            running.callback(server.stop)
        bench = Bench(mysql, kafka, folder, chosen.core if chosen.core >= 0 else None)
        result = measure(bench, chosen.rows, chosen.updates, chosen.repeat, chosen.peer)
    result["machine"] = {"cores": os.cpu_count(), "python": platform.python_version(), "load": os.getloadavg()}
    show(result)
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(result, indent=1) + "\n")
    console.print(f"[dim]{OUT.relative_to(ROOT)}[/]")


console = Console(highlight=False)

if __name__ == "__main__":
    main()
