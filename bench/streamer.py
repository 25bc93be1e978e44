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
    """`seconds`: of the clock. `cpu_seconds`: of the whole process, start included. `resident_mb`: its peak."""

    events: int
    seconds: float
    cpu_seconds: float
    resident_mb: float


class Bench:
    def __init__(self, mysql: MySQL, kafka: Kafka, folder: Path, core: int | None) -> None:
        self._mysql, self._kafka, self._folder, self._core = mysql, kafka, folder, core

    def gtids(self) -> str:
        with self._mysql.connect() as connection, connection.cursor() as cursor:
            cursor.execute("SELECT @@global.gtid_executed")
            return str(cursor.fetchone()[0]).replace("\n", "")

    def bulk(self, rows: int) -> str:
        """Writes the bulk inserts; the GTID set before them."""
        with self._mysql.connect() as connection, connection.cursor() as cursor:
            cursor.execute("CREATE DATABASE bench")
            cursor.execute(TABLE)
            before = self.gtids()
            for first in range(0, rows, BULK):
                cursor.execute(f"INSERT INTO bench.orders VALUES {','.join(map(row, range(first, first + BULK)))}")
        return before

    def updates(self, count: int, rows: int) -> str:
        """Writes the single-row transactions; the GTID set before them."""
        before = self.gtids()
        with self._mysql.connect() as connection, connection.cursor() as cursor:
            for n in range(count):
                cursor.execute(f"UPDATE bench.orders SET amount = amount + 1, status = 'sent' WHERE id = {n % rows}")
        return before

    def run(self, name: str, start: str, events: int) -> Run:
        """`headrace run` from `start` until `events` are released, then SIGTERM."""
        file, log = self._folder / f"{name}.yaml", self._folder / f"{name}.log"
        file.write_text(
            PIPELINE.format(
                name=name,
                mysql=self._mysql.port,
                kafka=self._kafka.address,
                server_id=free_port(),
                start=start,
                http=free_port(),
            )
        )
        os.environ["BENCH_PASSWORD"] = self._mysql.password
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


def measure(bench: Bench, rows: int, updates: int, with_peer: bool, mysql: MySQL) -> dict[str, Any]:
    console.print(f"writing {rows:,} rows and {updates:,} transactions ...")
    before_bulk = bench.bulk(rows)
    before_updates = bench.updates(updates, rows)
    end = bench.gtids()
    console.print("streaming ...")
    idle = bench.run("idle", end, 0)
    # From before the updates there is nothing else; from before the bulk both come, and the difference is the bulk.
    single = bench.run("single", before_updates, updates)
    both = bench.run("both", before_bulk, rows + updates)
    figures = {
        "bulk_rows_per_second": rows / max(0.001, both.seconds - single.seconds),
        "single_row_transactions_per_second": updates / single.seconds,
        "cpu_seconds_per_million_bulk_rows": (both.cpu_seconds - single.cpu_seconds) / rows * 1e6,
        "cpu_seconds_per_million_transactions": (single.cpu_seconds - idle.cpu_seconds) / updates * 1e6,
        "start_cpu_seconds": idle.cpu_seconds,
        "peak_resident_mb": max(both.resident_mb, single.resident_mb),
    }
    result = {"headrace": figures, "runs": {"idle": asdict(idle), "single": asdict(single), "both": asdict(both)}}
    if with_peer:
        result["python-mysql-replication, rows only"] = peers.mysql_replication(
            mysql, before_bulk, before_updates, rows, updates
        )
    return result


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
        result = measure(bench, chosen.rows, chosen.updates, chosen.peer, mysql)
    result["machine"] = {"cores": os.cpu_count(), "python": platform.python_version(), "load": os.getloadavg()}
    show(result)
    OUT.parent.mkdir(exist_ok=True)
    OUT.write_text(json.dumps(result, indent=1) + "\n")
    console.print(f"[dim]{OUT.relative_to(ROOT)}[/]")


console = Console(highlight=False)

if __name__ == "__main__":
    main()
