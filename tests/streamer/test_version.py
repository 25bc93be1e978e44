"""The version that envelopes carry is the project's."""

from __future__ import annotations

import tomllib
from pathlib import Path

from streamer import VERSION


def test_one_version() -> None:
    project = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    assert project["version"] == VERSION
