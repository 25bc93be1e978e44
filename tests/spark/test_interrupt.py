"""What who presses Ctrl-C at a terminal, or ends it otherwise, sees of a job at its start and in its work."""

from __future__ import annotations

import os
import pty
import signal
import sys
import time
from pathlib import Path

import pytest

from contract import spark_process
from tests.spark.sessions import PIPELINE

ROOT = Path(__file__).parents[2]
JOB = """\
from concurrent.futures import ThreadPoolExecutor
from spark import job
def work(spark, pipeline, tables):
    long = lambda n: spark.range(10**14).selectExpr("sum(id % 7)").collect()
    print("working", flush=True)
    with ThreadPoolExecutor(1) as pool:
        return {"sums": [*pool.map(long, range(3)), long(3)]}
job.run("compact", work)
"""
STARTS = """\
from spark import job
made = job.session
job.session = lambda name: (print("starts", flush=True), made(name))[1]
"""
BECOMES = """\
from pathlib import Path
from streamer.cli.spark_driver import become
import os, time
execve = os.execve
os.execve = lambda *given: (print("becoming", flush=True), time.sleep(4), execve(*given))
"""
ENDS = """\
import time
from pyspark.sql import SparkSession
from spark import job
SparkSession.stop = lambda self: (print("stopping", flush=True), time.sleep(90))
job.run("compact", lambda spark, pipeline, tables: {})
"""
TELLS = """\
import os, signal, time
from spark import job, result
told = result.tell
result.tell = lambda **given: (os.kill(os.getpid(), signal.SIGTERM), time.sleep(1), told(**given))
job.run("compact", lambda spark, pipeline, tables: {})
"""
INCUBATOR = "WARNING: Using incubator modules: jdk.incubator.vector"  # Java's own
WAITS = {"working": 3, "starts": 1}  # seconds until Spark is in the middle of it
CUT = "error (spark_job): compact of shop: was interrupted, and left nothing half done: run it again"
HELD = "ends when Spark has started; once more ends at once"


def on_a_terminal(command: list[str], variables: dict[str, str], number: int, at: str) -> tuple[int, list[str]]:
    """The signal comes when the text `at` was seen; SIGINT as Ctrl-C."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.execve(command[0], command, {**os.environ, **variables})
    text, sent = b"", False
    try:
        while True:
            if at.encode() in text and not sent:
                time.sleep(WAITS.get(at, 0))
                sent = _send(number, pid, terminal)
            if not (read := os.read(terminal, 65536)):
                break
            text += read
    except OSError:  # the other end was closed, as Linux tells it
        pass
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), text.decode().replace("^C", "").splitlines()


def _send(number: int, pid: int, terminal: int) -> bool:
    if number == signal.SIGINT:
        return os.write(terminal, b"\x03") == 1
    os.kill(pid, number)
    return True


@pytest.mark.parametrize(
    ("number", "at", "before"),
    [
        pytest.param(signal.SIGINT, "working", ["working"], marks=pytest.mark.soak),
        (signal.SIGTERM, "working", ["working"]),
        pytest.param(signal.SIGINT, "starts", ["starts", HELD], marks=pytest.mark.soak),
    ],
)
def test_it_is_two_lines_and_all_that_was_printed_besides_is_the_jobs_own(
    tmp_path: Path, number: int, at: str, before: list[str]
) -> None:
    file, job = tmp_path / "shop.yaml", tmp_path / "job.py"
    file.write_text(PIPELINE.format(lake=tmp_path))
    job.write_text(STARTS * (at == "starts") + JOB)
    command, variables = spark_process.driver("compact", "local[1]", "--pipeline", str(file))
    status, lines = on_a_terminal([command[0], str(job), *command[2:]], variables, number, at)
    assert [line for line in lines if line != INCUBATOR] == [*before, "compact of shop: failed", CUT]
    assert status == 128 + number


@pytest.mark.soak
def test_one_that_comes_while_the_command_becomes_the_job_is_kept_until_that_can_end(tmp_path: Path) -> None:
    file = tmp_path / "shop.yaml"
    file.write_text(PIPELINE.format(lake=tmp_path))
    command = [sys.executable, "-c", f"{BECOMES}become('compact', 'local[1]', Path({str(file)!r}), {{}})"]
    status, lines = on_a_terminal(command, {}, signal.SIGINT, "becoming")
    lines = [line for line in lines if line != INCUBATOR]
    assert lines == ["starting Spark", "becoming", HELD, "compact of shop: failed", CUT]
    assert status == 128 + signal.SIGINT


@pytest.mark.parametrize(
    ("script", "more"),
    [pytest.param(ENDS, ["stopping"], marks=pytest.mark.soak, id="behind it"), pytest.param(TELLS, [], id="in it")],
)
def test_one_that_comes_while_its_end_is_told_ends_a_job_as_it_ended(
    tmp_path: Path, script: str, more: list[str]
) -> None:
    file, job = tmp_path / "shop.yaml", tmp_path / "job.py"
    file.write_text(PIPELINE.format(lake=tmp_path))
    job.write_text(script)
    command, variables = spark_process.driver("compact", "local[1]", "--pipeline", str(file))
    began = time.monotonic()
    status, lines = on_a_terminal([command[0], str(job), *command[2:]], variables, signal.SIGTERM, "stopping")
    assert [line for line in lines if line != INCUBATOR] == ["compact of shop: done", *more]
    assert status == 0
    assert time.monotonic() - began < 60, "it waits for nothing"
