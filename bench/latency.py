"""How long after its commit a change is visible in Kafka: `python -m bench.latency`. Single-row transactions at a
steady rate, then one now and then while the source rests.

The clock begins at the server's own commit time, which the record carries (`source.ts_us`), and ends when a consumer
that waits for committed records has it. Beside that: the same with the INSERT, from before it is sent; what a bare
producer and consumer take at the same pace on the same broker (`bench.ping`); and the p99 of each second by itself,
which tells a tail that is always there from a moment in which the machine stood still.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing import Process
from pathlib import Path
from statistics import median, quantiles
from typing import NamedTuple

from confluent_kafka import Consumer

from bench.headrace import ROOT
from bench.ping import ping, reader
from contract.pipeline import load
from stack.kafka import Kafka
from stack.mysql import MySQL
from stack.ports import free_port
from streamer.kafka.topics import provision

PIPELINE = """\
format: 1
name: {name}
source: {{host: 127.0.0.1, port: {port}, user: headrace, password: "${{BENCH_PASSWORD}}", server_id: {server_id}}}
tables: {{include: ["latency.*"]}}
kafka: {{bootstrap: "{kafka}", partitions: 1, linger_ms: {linger}}}
streamer: {{delivery: {delivery}, http: {{port: {http}}}}}
lake: {{path: unused}}
"""
TABLE = "CREATE TABLE latency.marks (id INT PRIMARY KEY AUTO_INCREMENT, sent BIGINT NOT NULL)"
IDLE_RATE = 5.0  # transactions a second, with nothing in between


class Mark(NamedTuple):
    """A row's way, in microseconds, Unix: before its INSERT is sent, committed by the server, read from Kafka."""

    sent: float
    committed: float
    seen: float


def write(mysql: MySQL, rate: float, count: int) -> None:
    """A process of its own: inserts at an even pace."""
    with mysql.connect() as connection, connection.cursor() as cursor:
        began = time.monotonic()
        for n in range(count):
            time.sleep(max(0.0, began + n / rate - time.monotonic()))
            cursor.execute("INSERT INTO latency.marks (sent) VALUES (%s)", (time.time_ns() // 1000,))


def seen(consumer: Consumer, count: int, patience: float) -> list[Mark]:
    """The next `count` records. Raises SystemExit where some are lacking."""
    found: list[Mark] = []
    until = time.monotonic() + patience
    while len(found) < count and time.monotonic() < until:
        message = consumer.poll(1)
        if message is not None and not message.error():
            now = time.time_ns() / 1000
            record = json.loads(message.value() or b"")
            found.append(Mark(record["after"]["sent"], record["source"]["ts_us"], now))
    if len(found) < count:
        raise SystemExit(f"{len(found)} of {count} records arrived")
    return found


def told(name: str, found: list[float]) -> str:
    """`found`: milliseconds."""
    if len(found) < 1000:
        return f"{name}: p50 {median(found):.2f} ms, at most {max(found):.2f} ms of {len(found):,}"
    cuts = quantiles(found, n=1000)
    return f"{name}: p50 {cuts[499]:.2f} ms, p99 {cuts[989]:.2f} ms, p99.9 {cuts[998]:.2f} ms of {len(found):,}"


def by_second(marks: list[Mark]) -> str:
    """The p99 of each second by itself."""
    seconds: dict[int, list[float]] = {}
    for mark in marks:
        seconds.setdefault(int(mark.sent - marks[0].sent) // 1_000_000, []).append((mark.seen - mark.committed) / 1000)
    tails = [quantiles(one, n=100)[98] for one in seconds.values() if len(one) > 1]
    worst = max(range(len(tails)), key=tails.__getitem__)
    return f"p99 of a second: {median(tails):.2f} ms in the middle, {tails[worst]:.2f} ms in second {worst + 1}"


class Bench:
    """`kept`: where each row's way is written, None for nowhere."""

    def __init__(self, mysql: MySQL, kafka: Kafka, folder: Path, chosen: argparse.Namespace) -> None:
        self._mysql, self._kafka, self._folder, self._chosen = mysql, kafka, folder, chosen
        self.kept: Callable[[list[object]], object] | None = None

    def measure(self, delivery: str) -> Iterator[str]:
        """Lines to print."""
        chosen, name = self._chosen, delivery.replace("_", "-")
        loaded, warm = (int(chosen.rate * seconds) for seconds in (chosen.seconds, chosen.warm))
        transactions = delivery == "exactly_once"
        bare = ping(self._kafka, f"{name}-ping", loaded + warm, chosen.rate, False)[warm:]
        yield told(f"bare producer and consumer, {chosen.rate:g} a second", bare)
        bare = ping(self._kafka, f"{name}-ping-idle", chosen.idle + 5, IDLE_RATE, transactions)[5:]
        yield told(f"bare {'Kafka transactions' if transactions else 'producer'}, {IDLE_RATE:g} a second", bare)
        with self._streaming(delivery, name) as consumer:
            marks = self._written(consumer, chosen.rate, warm + loaded)[warm:]
            yield from self._told(f"{delivery}, {chosen.rate:g} transactions a second", marks)
            yield by_second(marks)
            yield from self._told(f"{delivery}, idle", self._written(consumer, IDLE_RATE, chosen.idle + 5)[5:])

    def _told(self, name: str, marks: list[Mark]) -> Iterator[str]:
        if self.kept:
            for mark in marks:
                self.kept([name, *mark])
        yield told(name, [(mark.seen - mark.committed) / 1000 for mark in marks])
        yield told("  with the INSERT", [(mark.seen - mark.sent) / 1000 for mark in marks])

    def _written(self, consumer: Consumer, rate: float, count: int) -> list[Mark]:
        writer = Process(target=write, args=(self._mysql, rate, count))
        writer.start()
        marks = seen(consumer, count, count / rate * 2 + 30)
        writer.join()
        return marks

    @contextmanager
    def _streaming(self, delivery: str, name: str) -> Iterator[Consumer]:
        """A streamer of a new table, and a consumer of its topic."""
        file = self._folder / f"{delivery}.yaml"
        values = {"name": name, "port": self._mysql.port, "kafka": self._kafka.address, "delivery": delivery}
        values |= {"linger": self._chosen.linger, "server_id": free_port(), "http": free_port()}
        file.write_text(PIPELINE.format(**values))
        with self._mysql.connect() as connection, connection.cursor() as cursor:
            for statement in ("DROP DATABASE IF EXISTS latency", "CREATE DATABASE latency", TABLE):
                cursor.execute(statement)
        provision(load(file), [("latency", "marks")])
        with ExitStack() as running, (self._folder / f"{delivery}.log").open("wb") as log:
            streamer = subprocess.Popen(command(file), cwd=ROOT, stdout=log, stderr=log)
            running.callback(streamer.wait)
            running.callback(streamer.send_signal, signal.SIGTERM)
            while b'"streaming"' not in Path(log.name).read_bytes():
                if streamer.poll() is not None:
                    raise SystemExit(Path(log.name).read_text())
                time.sleep(0.1)
            consumer = reader(self._kafka, f"{name}.latency.marks")
            running.callback(consumer.close)
            yield consumer


def command(file: Path) -> list[str]:
    return [sys.executable, "-m", "streamer.cli", "run", "--log", "json", str(file)]


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.latency", description=__doc__)
    parser.add_argument("--rate", type=float, default=1000, help="transactions a second")
    parser.add_argument("--seconds", type=float, default=30, help="after the warm-up")
    parser.add_argument("--warm", type=float, default=10, help="seconds, not counted: until the broker's JVM is warm")
    parser.add_argument("--idle", type=int, default=50, help="transactions while the source rests")
    parser.add_argument("--linger", type=float, default=5.0, help="kafka.linger_ms of the pipeline")
    parser.add_argument("--delivery", default="at_least_once,exactly_once", help="of these, by commas")
    parser.add_argument("--keep", type=Path, help="a CSV file for each row's way: sent, committed, seen, microseconds")
    return parser.parse_args()


def main() -> None:
    chosen = arguments()
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as name, ExitStack() as running:
        folder = Path(name)
        mysql = MySQL(folder / "mysql", free_port())
        mysql.start()
        running.callback(mysql.kill)
        kafka = Kafka(folder / "kafka", free_port(), free_port())
        kafka.start()
        running.callback(kafka.stop)
        os.environ["BENCH_PASSWORD"] = mysql.password
        bench = Bench(mysql, kafka, folder, chosen)
        if chosen.keep:
            bench.kept = csv.writer(running.enter_context(chosen.keep.open("w", newline=""))).writerow
        for delivery in chosen.delivery.split(","):
            for line in bench.measure(delivery):
                print(line, flush=True)


if __name__ == "__main__":
    main()
