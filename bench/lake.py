"""How fast compaction is: `python -m bench.lake backlog`, changes that wait in Kafka, from their first byte to merged
tables; `python -m bench.lake fresh`, how old the lake is while changes come at an even rate; `python -m bench.lake
bytes`, how many bytes merges write into tables of several sizes (written.py).

MySQL, Kafka, the streamer and Spark on the same machine, as a small installation has it.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from math import gcd
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from bench import by_hand, load, spread, written
from bench.headrace import ROOT
from contract import jobs
from contract.names import events_topic
from contract.pipeline import Pipeline
from contract.pipeline import load as loaded
from contract.spark_process import driver
from contract.status import parse
from stack.kafka import Kafka
from stack.maven import spark_jars_folder
from stack.mysql import USER, MySQL
from stack.ports import free_port
from stack.spark import JAVA
from streamer.checkpoints.kafka import read_checkpoint
from streamer.kafka.topics import provision

PIPELINE = """\
format: 1
name: bench
source: {{host: 127.0.0.1, port: {port}, user: {user}, password: "${{BENCH_PASSWORD}}", server_id: 77}}
tables: {{include: ["bench.orders", "bench.orders_*"]}}
kafka: {{bootstrap: "{kafka}", partitions: 2}}
streamer: {{delivery: exactly_once, start: "{start}", http: {{port: {http}}}}}
lake: {{path: "{lake}"}}
compaction: {{every_seconds: {every}}}
"""
PIECE = 20_000  # rows that a statement updates


class Site:
    """The servers and a pipeline whose records wait in Kafka."""

    def __init__(self, home: Path, running: ExitStack) -> None:
        self.home = home
        self.mysql = MySQL(home / "mysql", free_port(), options=["innodb_buffer_pool_size=512M"])
        self.kafka = Kafka(home / "kafka", free_port())
        for server in (self.mysql, self.kafka):
            server.start()
            running.callback(server.kill)
        os.environ["BENCH_PASSWORD"] = self.mysql.password
        self.file = home / "bench.yaml"

    def pipeline(self, start: str, tables: int, every: float = 5) -> Pipeline:
        """`every`: seconds from round to round of compact --loop."""
        self.file.write_text(
            PIPELINE.format(
                port=self.mysql.port, user=USER, kafka=self.kafka.address, start=start, http=free_port(),
                lake=self.home / "lake", every=every,
            )
        )  # fmt: skip
        found = loaded(self.file)
        provision(found, [(load.DATABASE, name) for name in spread.tables(tables)])
        return found

    @contextmanager
    def streamer(self) -> Iterator[None]:
        command = [sys.executable, "-m", "streamer.cli", "run", "--log", "json", str(self.file)]
        with (self.home / "streamer.log").open("wb") as out:
            process = subprocess.Popen(command, cwd=ROOT, stdout=out, stderr=out)
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()

    def job(self, name: str, memory: str, java: str) -> subprocess.Popen[str]:
        os.environ |= {
            "HEADRACE_SPARK_JARS": str(spark_jars_folder()),
            "HEADRACE_SPARK_MEMORY": memory,
            "HEADRACE_SPARK_JAVA": java,
        }
        command, environment = driver(name, "local[2]", "--pipeline", str(self.file))
        with (self.home / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                command, cwd=ROOT, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=log, text=True
            )

    def log(self, name: str) -> str:
        return (self.home / f"{name}.log").read_text()[-3000:]

    def wait_for(self, pipeline: Pipeline, events: int) -> None:
        until = time.monotonic() + 600
        while time.monotonic() < until:
            checkpoint = read_checkpoint(pipeline)
            if checkpoint is not None and checkpoint.events >= events:
                return
            time.sleep(0.5)
        raise SystemExit(f"the streamer did not deliver {events:,} events; its log:\n{self.log('streamer')}")


def update(mysql: MySQL, chosen: argparse.Namespace, changes: int) -> None:
    """Each statement changes rows side by side, PIECE or less, of one table."""
    each = chosen.rows // chosen.tables
    piece = gcd(PIECE, each)
    next_piece = spread.pieces(spread.tables(chosen.tables), each, piece)
    with mysql.connect(autocommit=True) as connection, connection.cursor() as cursor:
        for done, (table, first) in zip(range(0, changes, piece), next_piece, strict=False):
            last = first + min(piece, changes - done)
            cursor.execute(
                f"UPDATE {table} SET amount = amount + 1, status = 'sent' WHERE id >= {first} AND id < {last}"
            )


def backlog(site: Site, chosen: argparse.Namespace) -> None:
    start = load.begin(site.mysql).gtids
    spread.fill_all(site.mysql, chosen.rows, chosen.tables)
    if chosen.warm:
        behind_another(site, chosen, start)
        return
    update(site.mysql, chosen, chosen.changes - chosen.rows)
    pipeline = site.pipeline(start, chosen.tables)
    with site.streamer():
        site.wait_for(pipeline, chosen.changes)
    began = time.monotonic()
    with rounds_of(site, chosen, "compact") as rounds:
        rate = told(next(rounds), chosen.changes)
    print(f"{time.monotonic() - began:.1f} s with the start of Spark and its end", flush=True)
    if chosen.tables == 1:
        beside(site, chosen, pipeline, rate)


def beside(site: Site, chosen: argparse.Namespace, pipeline: Pipeline, rate: float) -> None:
    """The same records by a job as people write it by hand, which makes the table alone; it is to be right, too."""
    topic = events_topic(pipeline, load.DATABASE, spread.tables(1)[0])
    facts = by_hand.run(site.kafka.address, topic, site.home / "by_hand", chosen.memory, chosen.java)
    with site.mysql.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"SELECT COUNT(*), SUM(amount) FROM {load.DATABASE}.orders")
        rows, amount = cursor.fetchone()
    if (facts["rows"], facts["amount"]) != (rows, str(amount)):
        raise SystemExit(f"the job by hand made {facts}, and MySQL has {rows} rows, {amount}")
    other = chosen.changes / facts["seconds"]
    print(
        f"by hand, into the table alone: {facts['seconds']:.1f} s: {other:,.0f} a second; compaction, which keeps the "
        f"history: {rate / other:.0%} of that",
        flush=True,
    )


def behind_another(site: Site, chosen: argparse.Namespace, start: str) -> None:
    """The backlog of a session that is warm: `chosen.warm` changes are landed and merged in its first round, and the
    others come before its second."""
    update(site.mysql, chosen, chosen.warm - chosen.rows)
    pipeline = site.pipeline(start, chosen.tables, every=chosen.every)
    with site.streamer():
        site.wait_for(pipeline, chosen.warm)
        with rounds_of(site, chosen, "compact_loop") as rounds:
            told(next(rounds), chosen.warm)
            update(site.mysql, chosen, chosen.changes)
            site.wait_for(pipeline, chosen.warm + chosen.changes)
            told(next(rounds), chosen.changes)


@contextmanager
def rounds_of(site: Site, chosen: argparse.Namespace, job: str) -> Iterator[Iterator[dict[str, Any]]]:
    """What the job says of its rounds; at the end it is told to end."""
    process, ended = site.job(job, chosen.memory, chosen.java), threading.Event()

    def said() -> Iterator[dict[str, Any]]:
        assert process.stdout is not None
        yield from (report for line in process.stdout if (report := jobs.read(line)))
        if not ended.is_set():
            raise SystemExit(f"{job} ended:\n{site.log(job)}")

    try:
        yield said()
    finally:
        ended.set()
        process.send_signal(signal.SIGTERM)
        process.wait()


def fresh(site: Site, chosen: argparse.Namespace) -> None:
    """A lake's age: how long before now everything was committed that it has."""
    start = load.begin(site.mysql).gtids
    spread.fill_all(site.mysql, chosen.rows, chosen.tables)
    pipeline = site.pipeline(start, chosen.tables)
    with site.streamer():
        site.wait_for(pipeline, chosen.rows)
        with scheduled(site, chosen) if chosen.every else looping(site, chosen):
            ages = watched(site, pipeline, chosen)
    print(
        f"{chosen.rate:,} changes a second for {chosen.seconds} s: the lake's age {median(ages):.1f} s in the middle, "
        f"{quantiles(ages, n=100, method='inclusive')[98]:.1f} s p99, {max(ages):.1f} s at most; "
        f"{over(ages, chosen.goal)}",
        flush=True,
    )


def over(ages: list[float], goal: float) -> str:
    """`ages`: one a second. A job that has just started has not found its pace yet: so it is told when it was slow."""
    late = [second for second, age in enumerate(ages, 1) if age > goal]
    return f"above {goal:g} s in {len(late)} of {len(ages)} seconds" + (f", the last the {late[-1]}th" if late else "")


@contextmanager
def looping(site: Site, chosen: argparse.Namespace) -> Iterator[None]:
    with rounds_of(site, chosen, "compact_loop") as rounds:
        # Read, or the job would stand still once the pipe is full.
        reader = threading.Thread(target=deque, args=(rounds, 0), daemon=True)
        reader.start()
        yield


@contextmanager
def scheduled(site: Site, chosen: argparse.Namespace) -> Iterator[None]:
    """Runs one after the other, each a Spark of its own."""
    ended, failed = threading.Event(), list[str]()

    def run() -> None:
        while not ended.is_set() and not failed:
            began = time.monotonic()
            process = site.job("compact", chosen.memory, chosen.java)
            said, _ = process.communicate()
            if process.returncode:
                failed.append(f"compaction failed: {said}\n{site.log('compact')}")
            ended.wait(max(0.0, began + chosen.every - time.monotonic()))

    runs = threading.Thread(target=run)
    runs.start()
    try:
        yield
    finally:
        ended.set()
        runs.join()
    if failed:
        raise SystemExit(failed[0])


def watched(site: Site, pipeline: Pipeline, chosen: argparse.Namespace) -> list[float]:
    """The lake's age each second while rows are written, from its first run with all rows of before on."""
    ages: list[float] = []
    step = chosen.rate // 10
    next_piece = spread.pieces(spread.tables(chosen.tables), chosen.rows // chosen.tables, step)
    with site.mysql.connect(autocommit=True) as connection, connection.cursor() as cursor:
        began, written, until = time.monotonic(), 0, None
        while until is None or time.monotonic() < until:
            table, at = next(next_piece)
            cursor.execute(f"UPDATE {table} SET amount = amount + 1 WHERE id >= {at} AND id < {at + step}")
            written += step
            if written % chosen.rate == 0 and (age := age_of(pipeline)) is not None:
                until = until or time.monotonic() + chosen.seconds
                ages.append(age)
            time.sleep(max(0.0, began + written / chosen.rate - time.monotonic()))
    return ages


def age_of(pipeline: Pipeline) -> float | None:
    file = Path(pipeline.lake.place) / pipeline.name / "_status.json"
    status = parse(file.read_text()) if file.exists() else None
    return time.time() - status.checkpoint.ts_ms / 1000 if status and status.checkpoint else None


def told(report: dict[str, Any], changes: int) -> float:
    """How many changes a second it was."""
    if report.get("changes") != changes:
        raise SystemExit(f"compaction landed {report.get('changes')} of {changes} changes: {report.get('error')}")
    landing, seconds = report["landing_seconds"], report["seconds"]
    merging = seconds - landing
    print(
        f"{changes:,} changes in {seconds:.1f} s: {changes / seconds:,.0f} a second (landing {changes / landing:,.0f}, "
        f"merging {changes / merging:,.0f})",
        flush=True,
    )
    return changes / float(seconds)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench.lake", description=__doc__)
    parts = parser.add_subparsers(required=True)
    some = parts.add_parser("backlog", help="changes that wait in Kafka")
    some.add_argument("--changes", type=int, default=5_000_000, help="as many as rows, and updates of them")
    some.add_argument("--rows", type=int, default=1_000_000)
    some.add_argument("--warm", type=int, default=0, help="changes that the same session lands before; 0: none")
    some.add_argument("--every", type=float, default=300, help="seconds from its first round to the backlog's")
    some.set_defaults(work=backlog)
    some_age = parts.add_parser("fresh", help="how old the lake is under an even load")
    some_age.add_argument("--rate", type=int, default=5_000, help="changes a second")
    some_age.add_argument("--seconds", type=int, default=600)
    some_age.add_argument("--rows", type=int, default=1_000_000, help="of the table; a multiple of the rate")
    some_age.add_argument("--every", type=float, help="seconds from run to run of compact; without it compact --loop")
    some_age.add_argument("--goal", type=float, default=60.0, help="seconds that the lake may be behind")
    some_age.set_defaults(work=fresh)
    merges = parts.add_parser("bytes", help="how many bytes merges write, by changes and by the table's size")
    merges.add_argument("--sizes", type=int, nargs="+", default=written.SIZES, help="rows of the tables")
    merges.add_argument("--changes", type=int, nargs="+", default=written.CHANGES, help="rows that each merge changes")
    merges.add_argument("--out", type=Path, default=ROOT / "bench" / "out", help="folder of written.json, written.svg")
    merges.set_defaults(work=written.run)
    for part in (some, some_age):
        part.add_argument("--tables", type=int, default=1, help="over which rows and changes are spread evenly")
    for part in (some, some_age, merges):
        part.add_argument("--memory", default="2g", help="spark.driver.memory")
        part.add_argument("--java", default=JAVA, help="spark.driver.extraJavaOptions")
    return parser.parse_args()


def main() -> None:
    chosen = arguments()
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as home, ExitStack() as running:
        place = Path(home) if chosen.work is written.run else Site(Path(home), running)
        chosen.work(place, chosen)


if __name__ == "__main__":
    main()
