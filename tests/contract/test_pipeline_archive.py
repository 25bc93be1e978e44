"""The section `archive` of a pipeline file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from contract.pipeline import Pipeline, PipelineFileError, load
from contract.pipeline_archive import Archive

FILE = """\
format: 1
name: kept
source: {host: h, user: u, password: "${KEPT_PASSWORD:-p}", server_id: 7}
tables: {include: ["a.*"]}
kafka: {bootstrap: "h:9092"}
lake: {path: lake}
"""


def loaded(folder: Path, section: str, monkeypatch: pytest.MonkeyPatch) -> Pipeline:
    monkeypatch.setenv("KEPT_PASSWORD", "p")
    monkeypatch.setenv("KEPT_SECRET", "s3cret")
    path = folder / "kept.yaml"
    path.write_text(FILE.replace(":-p", "") + section)
    return load(path)


def test_a_pipeline_need_not_have_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert loaded(tmp_path, "", monkeypatch).archive is None


def test_it_reads_under_an_id_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = loaded(tmp_path, "archive: {target: /backup}\n", monkeypatch)
    assert pipeline.archive is not None
    assert pipeline.archive.reader(pipeline.source).server_id == 8
    last = pipeline.source.model_copy(update={"server_id": 4294967295})
    assert pipeline.archive.reader(last).server_id == 1
    with pytest.raises(PipelineFileError, match=r"kept.yaml:7: archive.server_id: is the streamer's own"):
        loaded(tmp_path, "archive: {target: /backup, server_id: 7}\n", monkeypatch)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"target": "s3://bucket"}, "spool is needed"),
        ({"target": "/backup", "spool": "/spool"}, "have no use"),
        ({"target": "/backup", "options": {"key": "k"}}, "have no use"),
        ({"target": ""}, "at least 1"),
    ],
)
def test_what_does_not_fit_together_is_refused(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        Archive.model_validate(given)


def test_a_stores_secret_is_never_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    section = 'archive: {target: "s3://b", spool: /spool, options: {key: k, secret: "${KEPT_SECRET}"}}\n'
    pipeline = loaded(tmp_path, section, monkeypatch)
    assert pipeline.archive is not None
    assert pipeline.archive.options["secret"] == "s3cret"
    assert "s3cret" not in repr(pipeline)
    with pytest.raises(PipelineFileError) as caught:
        loaded(tmp_path, section.replace("${KEPT_SECRET}", "s3cret"), monkeypatch)
    assert "s3cret" not in str(caught.value)
