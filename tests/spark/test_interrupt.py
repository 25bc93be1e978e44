"""What who presses Ctrl-C at a terminal sees of a job in the middle of Spark's work."""

from __future__ import annotations

import os
import pty
import time
from pathlib import Path

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
INCUBATOR = "WARNING: Using incubator modules: jdk.incubator.vector"  # Java's own, before any of ours


def on_a_terminal(command: list[str], variables: dict[str, str]) -> tuple[int, list[str]]:
    """Ctrl-C comes in the middle of the work."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.chdir(ROOT)
        os.execve(command[0], command, {**os.environ, **variables})
    text, sent = b"", False
    try:
        while read := os.read(terminal, 65536):
            text += read
            if b"working" in text and not sent:
                time.sleep(3)
                sent = os.write(terminal, b"\x03") == 1
    except OSError:  # the other end was closed, as Linux tells it
        pass
    os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), text.decode().replace("^C", "").splitlines()


def test_it_is_two_lines_and_all_that_was_printed_besides_is_the_jobs_own(tmp_path: Path) -> None:
    file, job = tmp_path / "shop.yaml", tmp_path / "job.py"
    file.write_text(PIPELINE.format(lake=tmp_path))
    job.write_text(JOB)
    command, variables = spark_process.driver("compact", "local[1]", "--pipeline", str(file))
    status, lines = on_a_terminal([command[0], str(job), *command[2:]], variables)
    assert [line for line in lines if line != INCUBATOR] == [
        "working",
        "compact of shop: failed",
        "error (spark_job): compact of shop: was interrupted. Run it again: nothing is left to mend",
    ]
    assert status == 130
