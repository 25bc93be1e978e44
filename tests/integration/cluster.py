"""A Spark cluster of this machine: a standalone master and two workers of one core each, from pyspark's own jars."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from contract import jobs, spark_process
from stack.maven import pyspark_folder
from stack.ports import free_port
from tests.integration.spark_jobs import ROOT

# Executors in another zone, and without the checkout on their path: what they need comes from the driver.
DEFAULTS = """\
spark.executor.memory 512m
spark.executor.cores 1
spark.executor.extraJavaOptions -Duser.timezone=America/St_Johns -XX:TieredStopAtLevel=1
spark.sql.shuffle.partitions 2
spark.sql.codegen.wholeStage false
"""
SECONDS = 60


class Cluster:
    """`master`: its address. Everything of it listens on the loopback alone. `said`: by the last job's driver."""

    said = ""

    def __init__(self, folder: Path, running: ExitStack) -> None:
        self.folder, self.running = folder, running
        (folder / "spark-defaults.conf").write_text(DEFAULTS)
        mine = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        self.environment = {
            **mine, "SPARK_LOCAL_IP": "127.0.0.1", "SPARK_CONF_DIR": str(folder), "SPARK_DAEMON_MEMORY": "128m",
            "SPARK_DAEMON_JAVA_OPTS": "-XX:TieredStopAtLevel=1", "SPARK_HOME": str(pyspark_folder().parent),
        }  # fmt: skip
        port = free_port()
        self.master = f"spark://127.0.0.1:{port}"
        self.log = self._start("master.Master", port)
        for n in ("1", "2"):
            place = str(folder / f"worker-{n}")
            self._start("worker.Worker", free_port(), "-c", "1", "-m", "600m", "-d", place, self.master)
        until = time.monotonic() + SECONDS
        while self.log.read_text().count("Registering worker 127.0.0.1:") < 2:
            assert time.monotonic() < until, self.log.read_text()
            time.sleep(0.1)

    def _start(self, name: str, port: int, *arguments: str) -> Path:
        log = self.folder / f"{name}-{port}.log"
        command = [
            str(pyspark_folder().parent / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}",
            "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(free_port()), *arguments,
        ]  # fmt: skip
        with log.open("w") as out:
            process = subprocess.Popen(command, env=self.environment, cwd=self.folder, stdout=out, stderr=out)
        self.running.callback(process.wait)
        self.running.callback(process.terminate)  # a worker that is killed would leave its executors
        return log

    def run(self, job: str, file: Path, variables: Mapping[str, str], *arguments: str) -> dict[str, Any]:
        """The job's report (contract/jobs.py), with its driver on this machine. Fails the test where it ends without
        one."""
        command, environment = self._driver(job, file, variables, *arguments)
        done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=300)
        reports = [found for line in done.stdout.splitlines() if (found := jobs.read(line))]
        assert len(reports) == 1, f"{job} ended with {done.returncode}:\n{done.stdout}\n{done.stderr[-4000:]}"
        self.said = done.stderr
        return reports[0]

    @contextmanager
    def looping(self, file: Path, variables: Mapping[str, str]) -> Iterator[None]:
        """A looping compaction meanwhile, which ends at a signal without a failure."""
        command, environment = self._driver("compact_loop", file, variables)
        with (self.folder / "looping.log").open("w") as out:
            process = subprocess.Popen(command, env=environment, cwd=ROOT, stdout=out, stderr=out)
        try:
            yield
            process.send_signal(signal.SIGTERM)
            assert process.wait(120) == 0, (self.folder / "looping.log").read_text()
        finally:
            process.kill()
            process.wait()

    def _driver(
        self, job: str, file: Path, variables: Mapping[str, str], *arguments: str
    ) -> tuple[list[str], dict[str, str]]:
        with pytest.MonkeyPatch.context() as patch:
            for name, value in variables.items():
                patch.setenv(name, value)
            command, more = spark_process.driver(job, self.master, "--pipeline", str(file), *arguments)
        return command, {**self.environment, **variables, **more}

    def used(self) -> set[str]:
        """The workers that had an executor."""
        return set(re.findall(r"Launching executor \S+ on worker (\S+)", self.log.read_text()))
