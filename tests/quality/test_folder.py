"""The alerts that are kept: one JSON line each."""

from __future__ import annotations

from pathlib import Path

import pytest

from contract.pipeline import Pipeline
from quality import folder
from tests.spark.sessions import pipeline_in


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    return pipeline_in(tmp_path)


def test_one_that_a_full_disk_cut_costs_no_other(pipeline: Pipeline) -> None:
    path = folder.append_alert(pipeline, {"dag": "a", "task": "verify", "n": 1})
    with path.open("a") as file:
        file.write('{"dag": "a", "task": "ver')
    assert next(folder.alerts_of(pipeline, "verify", "a")) == {"dag": "a", "task": "verify", "n": 1}
    folder.append_alert(pipeline, {"dag": "a", "task": "verify", "n": 2})
    assert [alert["n"] for alert in folder.read_alerts(pipeline)] == [2, 1]
