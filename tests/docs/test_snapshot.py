"""The snapshot section of docs/configuration.md is one that the pipeline file takes; the reasons of docs/operations.md
are those that a snapshot gives."""

from __future__ import annotations

import re
from pathlib import Path

import yaml

from contract.pipeline_snapshot import Snapshot

ROOT = Path(__file__).parents[2]


def test_the_pages_limits_are_taken() -> None:
    section = (ROOT / "docs" / "configuration.md").read_text().split("### A snapshot that takes little")[1]
    text = section.split("```yaml\n")[1].split("```")[0]
    asked = Snapshot.model_validate(yaml.safe_load(text)["snapshot"])
    assert asked.replica == "db2.example.org:3306"
    assert set(Snapshot.model_fields) - {"to_kafka", "reread_stale"} == asked.model_fields_set


def test_every_reason_to_read_a_table_again_is_explained() -> None:
    section = (ROOT / "docs" / "operations.md").read_text().split("## A snapshot that was killed")[1].split("\n## ")[0]
    explained = {line.split("|")[1].strip() for line in section.splitlines() if line.startswith("| ")} - {"reason"}
    stale = (ROOT / "spark" / "snapshot" / "resume.py").read_text().split("def _stale")[1].split("\n    def ")[0]
    assert explained == set(re.findall(r'return "(.*)"', stale))
