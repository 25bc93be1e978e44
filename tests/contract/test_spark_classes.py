"""Which archive of Spark's classes a driver is started with: the one that was written for this Java and these jars."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from contract.spark_classes import FILE, QUIET, archive_name, shared_classes
from contract.spark_process import spark_java


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program of that name, beside a cache and a Spark of the test's own."""
    program = tmp_path / "jdk" / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    (tmp_path / "spark" / "jars").mkdir(parents=True)
    (tmp_path / "cache").mkdir()
    monkeypatch.delenv("HEADRACE_SPARK_JAVA", raising=False)
    for name, folder in (("JAVA_HOME", "jdk"), ("SPARK_HOME", "spark"), ("HEADRACE_CACHE", "cache")):
        monkeypatch.setenv(name, str(tmp_path / folder))
    return program


def archive(cache: Path, size: int = 5) -> Path:
    """As `make spark-jars` leaves it for what runs now."""
    folder = cache / (archive_name() or "")
    folder.mkdir()
    (folder / FILE).write_bytes(b"x" * 5)
    (folder / "manifest.json").write_text(json.dumps({"files": {FILE: size}}))
    return folder / FILE


def test_a_driver_is_given_the_archive_of_its_java_and_its_jars(java: Path, tmp_path: Path) -> None:
    assert shared_classes() == []
    file = archive(tmp_path / "cache")
    assert shared_classes() == [f"-XX:SharedArchiveFile={file}", *QUIET]
    assert spark_java().startswith(f"-XX:SharedArchiveFile={file} ")


def test_another_java_or_another_spark_has_another_one(java: Path, tmp_path: Path) -> None:
    archive(tmp_path / "cache")
    os.utime(java, (1, 1))  # as of an update
    assert shared_classes() == []
    archive(tmp_path / "cache")
    assert shared_classes()
    (tmp_path / "spark" / "jars" / "one.jar").touch()
    os.utime(tmp_path / "spark" / "jars", (1, 1))
    assert shared_classes() == []


@pytest.mark.parametrize("manifest", ['{"files": {"spark.jsa": 6}}', "{", "[]", "{}"])
def test_one_that_is_not_whole_is_not_given(java: Path, tmp_path: Path, manifest: str) -> None:
    """Java would die of it."""
    (archive(tmp_path / "cache").parent / "manifest.json").write_text(manifest)
    assert shared_classes() == []


def test_where_java_or_spark_is_not_known_there_is_none(java: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPARK_HOME", "/nowhere")
    assert archive_name() is None
    monkeypatch.delenv("SPARK_HOME")
    monkeypatch.setenv("HEADRACE_SPARK_PYTHON", "/elsewhere/python")
    assert archive_name() is None
    assert shared_classes() == []
    monkeypatch.delenv("HEADRACE_SPARK_PYTHON")
    java.unlink()
    assert archive_name() is None
