"""How fast a snapshot is, and what memory it takes, beside Spark's JDBC reader alone, which writes the same rows into
Delta by as many readers: `python -m bench.snapshot`.

Both in turn, each run a process of its own with a warm session, on two sizes of one table, since memory is to be the
same whatever the size. A snapshot is two steps, and the time of both is taken: rows into the staging (what the server
notices), and the hand-off into the table (by the next compaction).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

import psutil
from pyspark.sql import SparkSession

from bench import load
from bench.figures import peak_mb
from contract.checkpoint import Checkpoint
from contract.pipeline import Pipeline
from contract.spark_process import COLLECTOR
from spark.lake.lake import Lake
from spark.merging.handoff import apply_ready
from spark.session import session
from spark.snapshot.places import Places
from spark.snapshot.snapshot import Staging
from spark.source.row_texts import jdbc_options
from spark.source.source import Source
from stack.database import USER, Database
from stack.maven import spark_jars
from stack.mysql import MySQL
from stack.ports import free_port

ROOT = Path(__file__).parents[1]
GOAL = 0.6  # of the JDBC reader's rate
SEED = 50_000  # rows that are written singly; the others are copies of them
READERS = 2
MEMORY = "1g"  # of the driver
Facts = dict[str, Any]


def fill(database: Database, rows: int) -> None:
    """`orders` with so many rows, `small` with a fourth of them, `warm` with few."""
    load.table(database)
    load.bulk(database, min(SEED, rows))
    with database.connect() as connection, connection.cursor() as cursor:
        known = min(SEED, rows)
        while known < rows:
            more = min(known, rows - known)
            columns = "customer, status, amount, note, created, changed, ratio"
            cursor.execute(
                f"INSERT INTO bench.orders SELECT id + {known}, {columns} FROM bench.orders WHERE id < {more}"
            )
            known += more
        for name, count in (("small", rows // 4), ("warm", 5_000)):
            cursor.execute(f"CREATE TABLE bench.{name} LIKE bench.orders")
            cursor.execute(f"INSERT INTO bench.{name} SELECT * FROM bench.orders WHERE id < {count}")


def pipeline(port: int, folder: str) -> Pipeline:
    source = {"host": "127.0.0.1", "port": port, "user": USER, "password": os.environ["BENCH_PASSWORD"], "server_id": 9}
    given = {"format": 1, "name": "bench", "source": source, "tables": {"include": ["bench.*"]}}
    without = {"kafka": {"bootstrap": "127.0.0.1:1"}}  # neither way has a part in Kafka
    return Pipeline.model_validate({**given, **without, "lake": {"path": folder}, "snapshot": {"parallelism": READERS}})


def jdbc(spark: SparkSession, rules: Pipeline, table: str) -> Facts:
    options = jdbc_options(spark, rules)
    with Source(rules) as source:
        rows = int(source.value(f"SELECT count(*) FROM bench.{table}"))
    cuts = [rows * at // READERS for at in range(READERS + 1)]
    parts = [f"id >= {low} and id < {high}" for low, high in pairwise(cuts)]
    began = time.perf_counter()
    read = spark.read.jdbc(options.pop("url"), f"bench.{table}", predicates=parts, properties=options)
    read.write.format("delta").save(f"{rules.lake.place}/jdbc/{table}")
    return {"rows": rows, "seconds": time.perf_counter() - began}


def snapshot(spark: SparkSession, rules: Pipeline, table: str) -> Facts:
    lake = Lake(spark, rules)
    with Source(rules) as source:
        p0 = Checkpoint(
            pipeline="bench", connector_id="bench", server_id=1, server_uuid="", epoch=0, file="binlog.000001", pos=4,
            gtid_set=source.executed(), ts_ms=0, events=0, written_at=0,
        )  # fmt: skip
        began = time.perf_counter()
        staging = Staging(spark, rules, lake, source, Places(source, p0, lambda: p0), tell=lambda line: None)
        manifest = staging.run([("bench", table)])
    staged = time.perf_counter() - began
    apply_ready(spark, lake)
    rows = manifest.counts[f"bench.{table}"]
    return {"rows": rows, "staging": staged, "seconds": time.perf_counter() - began}


WAYS = {"JDBC reader alone": jdbc, "snapshot": snapshot}


def one(way: str, port: int, table: str, folder: str, java: str) -> None:
    """A run in this process: the session is warmed by a small table. Prints its figures as JSON."""
    extra = {
        "spark.master": f"local[{READERS}]", "spark.jars": ",".join(map(str, spark_jars())),
        "spark.driver.memory": MEMORY, "spark.driver.extraJavaOptions": f"-Duser.timezone=UTC {java}",
        "spark.ui.showConsoleProgress": "false",
    }  # fmt: skip
    spark, rules = session("bench", extra), pipeline(port, folder)
    for name in ("warm", table):
        facts = WAYS[way](spark, rules, name)
    [process] = [child.pid for child in psutil.Process().children(recursive=True) if child.name() == "java"]
    print("figures: " + json.dumps({**facts, "peak_mb": peak_mb(process)}), flush=True)
    spark.stop()


def run(way: str, database: Database, table: str, java: str) -> Facts:
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder:
        command = [sys.executable, "-m", "bench.snapshot", "--one", way, str(database.port), table, folder]
        command.append(f"--java={java}")
        environment = {**os.environ, "BENCH_PASSWORD": database.password}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{way} failed:\n{done.stderr[-3000:]}")
    found: Facts = json.loads(done.stdout.partition("figures: ")[2])
    return found


def told(found: dict[tuple[str, str], list[Facts]]) -> str:
    """The table of what was measured, medians of the runs; and what of the goal was reached on the large table."""
    lines = ["| | rows | rows/s | staging alone, rows/s | peak MB of Java |", "|---|---:|---:|---:|---:|"]
    rates: dict[tuple[str, str], float] = {}
    for (way, table), runs in found.items():
        rates[way, table] = median(run["rows"] / run["seconds"] for run in runs)
        staging = median(run["rows"] / run["staging"] for run in runs) if "staging" in runs[0] else None
        rates[f"{way}, staging", table] = staging or 0.0
        peak = median(run["peak_mb"] for run in runs)
        shown = "" if staging is None else f"{staging:,.0f}"
        lines.append(f"| {way} | {runs[0]['rows']:,} | {rates[way, table]:,.0f} | {shown} | {peak:,.0f} |")
    alone = rates["JDBC reader alone", "orders"]
    whole, staged = rates["snapshot", "orders"] / alone, rates["snapshot, staging", "orders"] / alone
    return "\n".join(lines) + f"\n\nof the JDBC reader's rate: {whole:.0%} (staging {staged:.0%}); goal {GOAL:.0%}"


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=2_000_000)
    options.add_argument("--runs", type=int, default=3)
    options.add_argument("--java", default=COLLECTOR, help="options of Spark's JVM; a job's own")
    options.add_argument("--one", nargs=4, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.one:
        way, port, table, folder = chosen.one
        one(way, int(port), table, folder, chosen.java)
        return
    found: dict[tuple[str, str], list[Facts]] = {}
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as home:
        mysql = MySQL(Path(home), free_port(), options=["innodb_buffer_pool_size=1G"])
        mysql.start()
        try:
            fill(mysql, chosen.rows)
            for _ in range(chosen.runs):  # in turn, so that other work on the machine meets both
                for table in ("small", "orders"):
                    for way in WAYS:
                        found.setdefault((way, table), []).append(run(way, mysql, table, chosen.java))
        finally:
            mysql.stop()
    print(told(found))


if __name__ == "__main__":
    main()
