"""A Spark job run as its users run it: by spark-submit, in a process of its own. And what it says where it fails, which
a test's own session tells much sooner."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract import spark_process
from contract.pipeline import Pipeline
from spark import failpoints
from spark.failures import message_of
from stack import spark
from stack.maven import spark_jars, spark_s3_jars_folder
from stack.spark_classes import spark_classes

ROOT = Path(__file__).parents[2]
COMPACT = ROOT / "spark" / "jobs" / "compact.py"
SECONDS = 200  # for which a job may run until it is where it is killed
# For jobs of a few rows each, as the tests' own session (tests/spark/sessions.py): compiling a query costs more than
# its run. Jobs that Airflow's tests start have Spark's own settings.
QUICK = {
    "spark.sql.codegen.wholeStage": "false", "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.shuffle.partitions": "1", "spark.databricks.delta.stats.collect": "false",
}  # fmt: skip
Work = Callable[..., dict[str, Any]]


def message(session: SparkSession, pipeline: Pipeline, work: Work, *arguments: list[str]) -> str:
    """The one message with which the job would end. Fails the test where it does not fail."""
    with pytest.raises(Exception) as caught:
        work(session, pipeline, *arguments)
    told = message_of(caught.value, pipeline)
    assert "\n" not in told
    return told


def kill(job: str, pipeline: Path, environment: dict[str, str], reached: Callable[[], bool]) -> None:
    """Starts the job and kills it with SIGKILL, Java and Python, once it has `reached` some place. Fails the test where
    it ends before."""
    process = subprocess.Popen(
        command(job, pipeline), env=settings(environment), cwd=ROOT, start_new_session=True,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    until = time.monotonic() + SECONDS
    try:
        while not reached():
            assert process.poll() is None, f"{job} ended with {process.returncode} before it got there"
            assert time.monotonic() < until, f"{job} did not get there"
            time.sleep(0.005)
    finally:
        with suppress(ProcessLookupError):  # it ended by itself, which the assertion tells
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def killed_at(point: str, pipeline: Path, script: Path = COMPACT) -> None:
    """Runs a driver which ends by SIGKILL, Java and Python, where it gets to the failpoint. Fails the test where it
    ends before."""
    process = subprocess.Popen(
        submitted(script, pipeline), env=settings({failpoints.VARIABLE: point}), cwd=ROOT, start_new_session=True,
        text=True, errors="replace", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        said, _ = process.communicate(timeout=SECONDS)
    finally:
        with suppress(ProcessLookupError):  # it has ended, but for one that hangs
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert process.returncode == -signal.SIGKILL, f"the run ended before it came to {point!r}:\n{said}"


def command(job: str, pipeline: Path, *arguments: str) -> list[str]:
    return submitted(ROOT / "spark" / "jobs" / f"{job}.py", pipeline, *arguments)


def submitted(script: Path, pipeline: Path, *arguments: str) -> list[str]:
    # Beside these no job has the classes that are kept, so it starts slower.
    of_s3 = ["--driver-class-path", f"{spark_s3_jars_folder()}/*"] if "s3a://" in pipeline.read_text() else []
    return [
        str(Path(sys.executable).parent / "spark-submit"), "--master", "local[2]", "--driver-memory", "1g",
        "--conf", f"spark.driver.extraJavaOptions={spark_process.spark_java()} {quick_java()}",
        "--jars", ",".join(map(str, spark_jars())), *of_s3,
        str(script), "--pipeline", str(pipeline), *arguments,
    ]  # fmt: skip


def settings(environment: dict[str, str]) -> dict[str, str]:
    ours = {"PYTHONPATH": str(ROOT), "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    return {**os.environ, **ours, **environment}


def quick_java() -> str:
    """What HEADRACE_SPARK_JAVA is for a job of few rows; its classes are kept now, if no test has done it."""
    spark_classes()
    return " ".join([spark.JAVA, *(f"-D{name}={value}" for name, value in QUICK.items())])
