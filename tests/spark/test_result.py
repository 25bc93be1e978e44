"""A job's result: lines for who sits at a terminal, one line of JSON for who reads a pipe; a failure's paragraph."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from contract import jobs
from tests.spark.sessions import PIPELINE

ROOT = Path(__file__).parents[2]
JOB = """\
from spark import job
job.session = lambda name: None
def work(spark, pipeline, tables):
    {body}
job.run("compact", work)
"""
DONE = 'return {"changes": 1234, "tables": {"shop.orders": {"rows": 336776}}}'


@pytest.fixture
def command(tmp_path: Path) -> list[str]:
    """But for what the job does."""
    file = tmp_path / "shop.yaml"
    file.write_text(PIPELINE.format(lake=tmp_path))
    return [sys.executable, "-c", JOB, "--pipeline", str(file)]


def piped(command: list[str], body: str) -> subprocess.CompletedProcess[str]:
    command = [word.format(body=body) if word.startswith(JOB[:20]) else word for word in command]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)


def on_a_terminal(command: list[str], body: str) -> tuple[int, str]:
    command = [word.format(body=body) if word.startswith(JOB[:20]) else word for word in command]
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, cwd=ROOT, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    text = b""
    try:
        while read := os.read(ours, 65536):
            text += read
    except OSError:  # the other end was closed, as Linux tells it
        pass
    os.close(ours)
    return process.wait(60), text.decode().replace("\r\n", "\n")


def test_a_pipe_has_the_result_and_a_failure_a_paragraph_besides(command: list[str]) -> None:
    done = piped(command, DONE)
    assert (done.returncode, done.stderr) == (0, "")
    [line] = done.stdout.splitlines()
    assert (jobs.read(line) or {})["tables"] == {"shop.orders": {"rows": 336776}}
    failed = piped(command, 'raise RuntimeError("it is so")')
    assert failed.returncode == 1
    [line] = failed.stdout.splitlines()
    assert "it is so" in (jobs.read(line) or {})["error"]
    *frames, told = failed.stderr.splitlines()  # of an error that nobody knows, which are the log that it names
    assert told.startswith("error (spark_job): compact of shop: RuntimeError: it is so")
    assert (frames[0], frames[-1].endswith(", in work")) == ("RuntimeError:", True)
    known = piped(command, 'from spark.errors import LakeError; raise LakeError("it is so")')
    assert known.stderr == "error (spark_job): compact of shop: it is so\n"


def test_a_terminal_has_lines_for_a_person(command: list[str]) -> None:
    status, text = on_a_terminal(command, DONE)
    assert status == 0
    assert text.splitlines() == ["compact of shop: done, 1,234 changes", "table        rows", "shop.orders  336,776"]
    status, text = on_a_terminal(command, 'raise RuntimeError("it is so")')
    assert status == 1
    assert "error (spark_job): compact of shop: RuntimeError: it is so" in text
    assert jobs.MARK not in text
    _, text = on_a_terminal(command, 'raise RuntimeError("2 of 5 tables: shop.a: gone | shop.b: stale")')
    assert text.splitlines()[-2:] == [
        "error (spark_job): compact of shop: RuntimeError: 2 of 5 tables: shop.a: gone",
        "  shop.b: stale. The log above has the details",
    ]


def test_an_interrupted_job_is_no_traceback(command: list[str]) -> None:
    ended = piped(command, "raise KeyboardInterrupt")
    assert ended.returncode == 130
    assert ended.stderr.startswith("error (spark_job): compact of shop: was interrupted, and left nothing half done")
    assert "Traceback" not in ended.stderr


def test_who_stages_rows_at_a_terminal_is_told_what_puts_them_in_their_place(command: list[str]) -> None:
    staged = [word.replace('"compact"', '"snapshot"') for word in command]
    _, text = on_a_terminal(staged, DONE)
    file = command[-1]
    assert text.splitlines()[-1] == (
        f"staged: `headrace compact {file}` puts that in its place, then `headrace verify {file}` proves it"
    )
    _, compacted = on_a_terminal(staged, DONE.replace('"changes"', '"compacted_seconds"'))
    assert compacted.splitlines()[-1] == f"`headrace verify {file}` proves what is in the lake now"
    assert '"file"' not in piped(staged, DONE).stdout
