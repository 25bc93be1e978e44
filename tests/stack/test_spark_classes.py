"""The archive of Spark's classes is one that Java takes, and a job without it runs all the same."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from contract.spark_classes import FILE, shared_classes
from contract.spark_process import driver
from stack import spark_classes as classes
from stack.errors import StackError
from stack.maven import pyspark_folder

SUBMIT = str(pyspark_folder().parent / "bin" / "spark-submit")


def test_java_takes_sparks_classes_from_it() -> None:
    assert (folder := classes.spark_classes())
    _, variables = driver("compact", "local[1]")
    assert f"-XX:SharedArchiveFile={folder / FILE} " in variables["PYSPARK_SUBMIT_ARGS"]
    loaded = said("-Xlog:class+load").splitlines()
    assert sum("org.apache.spark" in line and "shared objects file (top)" in line for line in loaded) > 100


def test_where_it_does_not_fit_java_goes_on_without_a_word(tmp_path: Path) -> None:
    """Such as with a folder of settings of the user's own, which Spark puts before its jars."""
    assert classes.spark_classes()
    (tmp_path / "spark-defaults.conf").touch()
    words = said("-Da=b", SPARK_CONF_DIR=str(tmp_path))
    assert "cds" not in words
    assert "archive" not in words
    assert "shared objects file (top)" not in said("-Xlog:class+load", SPARK_CONF_DIR=str(tmp_path))


def said(option: str, **variables: str) -> str:
    """All that a driver says which only tells its version."""
    java = " ".join([*shared_classes(), option])
    command = [SUBMIT, "--version", "--driver-java-options", java]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ, **variables})
    assert done.returncode == 0
    return done.stdout + done.stderr


def test_what_cannot_be_written_is_a_warning(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    def full(name: str, fill: object) -> Path:
        raise StackError("no space left", classes.HINT)

    monkeypatch.setattr(classes, "install", full)
    assert classes.spark_classes() is None
    assert "no space left. Jobs run without" in caplog.text
