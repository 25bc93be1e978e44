"""The contract suite of checkpoints on files, and what files do besides."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from contract.pipeline_sinks import FileCheckpoint
from streamer.checkpoints.documents import DocumentCheckpoints
from streamer.checkpoints.files import FileDocuments
from streamer.checkpoints.port import Checkpoints
from streamer.contract_suites.checkpoints import PIPELINE, CheckpointsSuite, checkpoint, schema
from streamer.delivery_errors import AwayError, CheckpointError


def of_files(path: Path, pipeline: str = PIPELINE) -> DocumentCheckpoints:
    return DocumentCheckpoints(pipeline, str(path), FileDocuments(FileCheckpoint(type="file", path=path)))


class TestFiles(CheckpointsSuite):
    @pytest.fixture(autouse=True)
    def place(self, tmp_path: Path) -> None:
        self.path = tmp_path / "a" / "position"

    def checkpoints(self) -> Checkpoints:
        return of_files(self.path)


def written(path: Path) -> Path:
    kept = of_files(path)
    kept.load()
    kept.keep(schema("orders", 1))
    kept.offer(checkpoint(3))
    assert kept.settled()
    kept.close()
    return path / "checkpoint.json"


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data[: len(data) // 2],
        lambda data: b"",
        lambda data: data.replace(b'"pos":300', b'"pos":900'),
        lambda data: data + b"x",
    ],
)
def test_a_damaged_file_is_refused_with_the_next_step(tmp_path: Path, damage: object) -> None:
    path = written(tmp_path)
    path.write_bytes(damage(path.read_bytes()))  # type: ignore[operator]
    with pytest.raises(CheckpointError, match="is damaged: its checksum") as caught:
        of_files(tmp_path).load()
    assert str(path) in str(caught.value)
    assert "backup" in caught.value.hint


def test_a_damaged_schema_is_refused_too(tmp_path: Path) -> None:
    written(tmp_path)
    [path] = tmp_path.glob("schema*.json")
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(CheckpointError, match="damaged"):
        of_files(tmp_path).load()


def test_what_a_crash_left_beside_counts_nothing(tmp_path: Path) -> None:
    path = written(tmp_path)
    (tmp_path / f".{path.name}.new").write_bytes(b"half")
    assert of_files(tmp_path).load() == checkpoint(3)


def test_a_file_of_another_pipeline_is_refused(tmp_path: Path) -> None:
    written(tmp_path)
    with pytest.raises(CheckpointError, match="of pipeline suite"):
        of_files(tmp_path, "other").load()


def test_one_process_at_a_time(tmp_path: Path) -> None:
    first = of_files(tmp_path)
    first.load()
    with pytest.raises(CheckpointError, match="another process"):
        of_files(tmp_path).load()
    first.close()
    of_files(tmp_path).load()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_said(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(CheckpointError, match="Permission denied"):
        of_files(tmp_path / "position").load()


class Flaky:
    """Documents in memory; `errors` are raised by the next writes."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.errors: list[Exception] = []

    def read(self) -> Mapping[str, str]:
        return self.texts

    def write(self, key: str, text: str) -> None:
        if self.errors:
            raise self.errors.pop(0)
        self.texts[key] = text

    def close(self) -> None:
        pass


def test_a_place_that_is_away_is_tried_again() -> None:
    place = Flaky()
    kept = DocumentCheckpoints(PIPELINE, "a table", place, retry_seconds=0)
    place.errors = [AwayError("keeping", "a table", "no answer", "It is tried again.")] * 3
    kept.offer(checkpoint(1))
    assert "no answer" in kept.last_error
    kept.offer(checkpoint(2))
    assert not kept.settled()
    assert kept.durable is None
    assert kept.settled()
    assert kept.failure is None
    assert kept.last_error == ""
    assert json.loads(place.texts["checkpoint"])["pos"] == 200


def test_what_no_retry_mends_is_a_failure_with_its_words() -> None:
    place = Flaky()
    kept = DocumentCheckpoints(PIPELINE, "a table", place)
    place.errors = [KeyError("no such column")]
    kept.offer(checkpoint(1))
    assert "no such column" in str(kept.failure)
    kept.offer(checkpoint(2))
    assert not kept.settled(), "nothing follows it"
    assert place.texts == {}
