"""The servers and the pipeline of bench.lake, and its Spark jobs."""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench import load, spread
from bench.headrace import ROOT
from contract import jobs
from contract.pipeline import Pipeline
from contract.pipeline import load as loaded
from contract.spark_process import driver
from stack.kafka import Kafka
from stack.maven import spark_jars_folder
from stack.mysql import USER, MySQL
from stack.ports import free_port
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
compaction: {{every_seconds: {every}{schedule}}}
"""


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

    def pipeline(self, start: str, tables: int, every: float = 5, schedule: str = "") -> Pipeline:
        """`every`: seconds from round to round of compact --loop. `schedule`: as cron has it, of Airflow."""
        cron = f', schedule: "{schedule}"' if schedule else ""
        self.file.write_text(
            PIPELINE.format(
                port=self.mysql.port, user=USER, kafka=self.kafka.address, start=start, http=free_port(),
                lake=self.home / "lake", every=every, schedule=cron,
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

    def spark(self, memory: str, java: str) -> None:
        """For the Spark processes that are started from now on."""
        os.environ |= {
            "HEADRACE_SPARK_JARS": str(spark_jars_folder()),
            "HEADRACE_SPARK_MEMORY": memory,
            "HEADRACE_SPARK_JAVA": java,
        }

    def job(self, name: str, memory: str, java: str) -> subprocess.Popen[str]:
        self.spark(memory, java)
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
