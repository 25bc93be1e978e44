"""The points where a run may be killed: a list that is complete, and a price of nothing."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

from spark import failpoints

ROOT = Path(__file__).parents[2]


def test_every_point_of_the_list_is_in_the_code_once_and_no_other() -> None:
    sources = [file for file in (ROOT / "spark").rglob("*.py") if file.name != "failpoints.py"]
    found = [point for file in sources for point in re.findall(r'\breached\("([^"]*)"\)', file.read_text())]
    assert sorted(found) == sorted(failpoints.ALL)
    assert sum(file.read_text().count("reached(") for file in sources) == len(found)


def process(value: str, *points: str) -> subprocess.CompletedProcess[str]:
    code = "import sys; from spark.failpoints import reached\n"
    code += "for point in sys.argv[1:]: reached(point); print(point, flush=True)"
    return subprocess.run(
        [sys.executable, "-c", code, *points], env={**os.environ, failpoints.VARIABLE: value}, cwd=ROOT,
        start_new_session=True, capture_output=True, text=True,
    )  # fmt: skip


def test_the_named_point_ends_the_process_and_no_other_does() -> None:
    assert process("", *failpoints.POINTS).returncode == 0
    killed = process("landed", "run noted", "landed", "merged")
    assert (killed.returncode, killed.stdout) == (-signal.SIGKILL, "run noted\n")
    assert process("landed:2", "landed", "merged").returncode == 0
    assert process("landed:2", "landed", "landed").returncode == -signal.SIGKILL


def test_a_point_that_is_none_is_told() -> None:
    said = process("landing")
    assert said.returncode == 1
    assert "there is no point 'landing'; there are: file written, run noted" in said.stderr


def test_a_hook_is_there_for_its_time_alone() -> None:
    seen: list[str] = []
    with failpoints.hooked(seen.append):
        failpoints.reached("merged")
    failpoints.reached("landed")
    assert seen == ["merged"]
