"""The points where a run may be killed: a list that is complete, and a price of nothing."""

from __future__ import annotations

import os
import re
import runpy
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from spark import failpoints

ROOT = Path(__file__).parents[2]


def test_every_point_of_the_list_is_in_the_code_once_and_no_other() -> None:
    sources = [file for file in (ROOT / "spark").rglob("*.py") if file.name != "failpoints.py"]
    found = [point for file in sources for point in re.findall(r'\breached\("([^"]*)"\)', file.read_text())]
    assert sorted(found) == sorted(failpoints.ALL)
    assert sum(file.read_text().count("reached(") for file in sources) == len(found)


def test_at_each_point_of_the_list_make_faults_kills(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_FAULTS", "all")
    [recipe] = re.findall(r"^faults:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert recipe.count('-m "soak or not soak"') == recipe.count("-m pytest"), "else some of them are left out"
    found = {point for file in re.findall(r"tests/\S+\.py", recipe) for point in killed_at(ROOT / file)}
    assert set(failpoints.ALL) - {point.partition(":")[0] for point in found} == set()


def killed_at(file: Path) -> Iterator[str]:
    """The points of a file's tests of which `make faults` can tell by their names that they kill something."""
    for name, test in runpy.run_path(str(file)).items():
        if name.startswith("test_") and "killed" in name:
            marks = [mark for mark in getattr(test, "pytestmark", ()) if mark.name == "parametrize"]
            values = [one for mark in marks if mark.args[0] == "point" for one in mark.args[1]]
            yield from (getattr(one, "values", [one])[0] for one in values)


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
