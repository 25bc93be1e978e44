"""Classes of the user's that cannot be used are mistakes of the pipeline file, each told at its line."""

from __future__ import annotations

from pathlib import Path

import pytest

from contract import pipeline as pipeline_file
from contract.pipeline_file import PipelineFileError
from streamer import outputs
from streamer.errors import HeadraceError
from tests.streamer.fakes import ListSink

FILE = """format: 1
name: own
source: {{host: h, user: u, password_file: x, server_id: 7}}
tables: {{include: ["shop.*"]}}
sinks:
  - {{type: {name}.Own}}
checkpoints: {{type: file, path: {folder}/position}}
"""
GOOD = """
from tests.streamer.fakes import ListSink

class Own(ListSink):
    def __init__(self, settings, pipeline):
        super().__init__()
"""


def opened(folder: Path, name: str, code: str) -> object:
    (folder / f"{name}.py").write_text(code)
    (folder / "own.yaml").write_text(FILE.format(folder=folder, name=name))
    sink, checkpoints = outputs.open_outputs(pipeline_file.load(folder / "own.yaml"))
    checkpoints.close()
    return sink


def test_one_that_can_be_used(tmp_path: Path) -> None:
    assert isinstance(opened(tmp_path, "good_sink", GOOD), ListSink)


@pytest.mark.parametrize(
    ("name", "code", "told"),
    [
        ("ends_itself", "import sys\nsys.exit(0)\n", "ends_itself cannot be imported: SystemExit: 0"),
        ("ends_later", f"{GOOD}        raise SystemExit(0)\n", "ends_later.Own(settings, pipeline) failed: SystemExit"),
        ("no_title", f"{GOOD}        del self.title\n", "one of no_title.Own has no title"),
        ("no_class", "Other = 1\n", "the module no_class has no Own"),
        ("no_method", "class Own:\n    pass\n", "no_method.Own has no send, poll, flush, probe, close"),
    ],
)
def test_one_that_cannot(tmp_path: Path, name: str, code: str, told: str) -> None:
    with pytest.raises(PipelineFileError) as caught:
        opened(tmp_path, name, code)
    [problem] = caught.value.problems
    assert told in problem.message
    assert problem.line == 6
    assert problem.fix


def test_what_it_raises_later_is_told_by_its_place(tmp_path: Path) -> None:
    sink = opened(tmp_path, "raises_later", f"{GOOD}\n    def probe(self, seconds):\n        return 1 / 0\n")
    with pytest.raises(HeadraceError, match=r"writing to raises_later\.Own: ZeroDivisionError at raises_later\.py:9"):
        sink.probe(0)  # type: ignore[attr-defined]
