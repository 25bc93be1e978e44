"""The file of alerts stays small, and tells what it told."""

from __future__ import annotations

import json
import multiprocessing
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from contract.pipeline import Pipeline
from quality import alert_lines, folder
from tests.spark.sessions import pipeline_in


@pytest.fixture
def pipeline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    monkeypatch.setattr(alert_lines, "MOST", 4_000)
    monkeypatch.setattr(alert_lines, "KEPT", 2_000)
    return pipeline_in(tmp_path)


def failed(n: int, task: str = "compact", dag: str = "shop.compaction") -> dict[str, Any]:
    return {"dag": dag, "task": task, "n": n}


def test_of_ever_so_many_failures_the_newest_are_kept(pipeline: Pipeline) -> None:
    sizes = [folder.append_alert(pipeline, failed(n)).stat().st_size for n in range(500)]
    assert max(sizes) <= 4_000
    assert [alert["n"] for alert in folder.read_alerts(pipeline)] == [*range(499, 479, -1)], "as the page shows them"


def test_what_one_task_told_last_outlives_the_failures_of_another(pipeline: Pipeline) -> None:
    folder.append_alert(pipeline, failed(1, "verify", "shop.quality"))
    folder.append_alert(pipeline, failed(2, "verify", "shop.quality"))
    folder.append_alert(pipeline, failed(3, "verify", "shop.repair"))
    for n in range(500):
        folder.append_alert(pipeline, failed(n))
    assert [alert["n"] for alert in folder.alerts_of(pipeline, "verify")] == [3, 2]


def test_a_line_that_was_cut_goes_with_the_old_ones(pipeline: Pipeline) -> None:
    path = folder.append_alert(pipeline, failed(0))
    with path.open("a") as file:
        file.write('{"dag": "shop.compaction", "task": "com')
    for n in range(1, 500):
        folder.append_alert(pipeline, failed(n))
    assert all(json.loads(line) for line in path.read_text().splitlines())


def _appends(pipeline: Pipeline, task: str, lines: int) -> None:
    for n in range(lines):
        folder.append_alert(pipeline, failed(n, task))


def test_two_that_append_lose_none_of_each_other(pipeline: Pipeline) -> None:
    tasks = [multiprocessing.get_context("fork").Process(target=_appends, args=(pipeline, t, 400)) for t in "ab"]
    for task in tasks:
        task.start()
    for task in tasks:
        task.join()
    assert {task.exitcode for task in tasks} == {0}
    for name in "ab":
        left = [alert["n"] for alert in folder.alerts_of(pipeline, name)]
        assert left == [*range(399, 399 - len(left), -1)], "each of the newest"
        assert left


def test_a_kill_while_it_is_shortened_leaves_it_as_it_was(pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(60):
        path = folder.append_alert(pipeline, failed(n))
    before = path.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", lambda _: os.kill(os.getpid(), signal.SIGKILL))
        task = multiprocessing.get_context("fork").Process(target=_appends, args=(pipeline, "verify", 60))
        task.start()
        task.join()
    assert task.exitcode == -signal.SIGKILL
    assert path.read_bytes().startswith(before), "nothing was taken out"
    folder.append_alert(pipeline, failed(60))
    assert path.stat().st_size <= 4_000, "the next one does it"
    assert next(folder.alerts_of(pipeline, "compact"))["n"] == 60
