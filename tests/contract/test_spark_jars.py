"""Which jars a Spark job is started with: named, fetched, Spark's own, or none."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

import pytest

from contract.spark_jars import spark_jars

SPARK = metadata.version("pyspark")
Folder = Callable[..., Path]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    """Makes one of the cache's with such jars, `age` seconds ago; Spark's own folder has none of ours."""
    for name in ("HEADRACE_SPARK_JARS", "HEADRACE_SPARK_PYTHON", "SPARK_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path / "cache"))

    def made(name: str, *jars: str, age: int = 0, within: str = "cache") -> Path:
        path = tmp_path / within / name
        path.mkdir(parents=True)
        for jar in jars:
            (path / jar).touch()
        at = path.stat().st_mtime - age
        os.utime(path, (at, at))
        return path

    return made


def test_the_folder_that_make_filled_is_found_by_itself(folder: Folder) -> None:
    folder("spark-jars-3.0.0-1-1", "old-spark.jar")
    folder(f"spark-jars-{SPARK}-1-1", "old.jar", age=100)
    newest = folder(f"spark-jars-{SPARK}-2-1", "b.jar", "a.jar", "manifest.json", age=10)
    s3 = folder("spark-s3-jars-9-9", "hadoop-aws-9.jar")
    assert spark_jars() == f"{newest}/a.jar,{newest}/b.jar"
    assert spark_jars(on_s3=True) == f"{newest}/a.jar,{newest}/b.jar,{s3}/hadoop-aws-9.jar"


def test_folders_that_are_named_go_first(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    folder(f"spark-jars-{SPARK}-2-1", "a.jar")
    one, two = folder("one", "x.jar", within="."), folder("two", "y.jar", within=".")
    monkeypatch.setenv("HEADRACE_SPARK_JARS", f"{one}{os.pathsep}{two}")
    assert spark_jars(on_s3=True) == f"{one}/x.jar,{two}/y.jar"
    monkeypatch.setenv("HEADRACE_SPARK_JARS", f"{one}{os.pathsep}{one}/none")
    with pytest.raises(
        FileNotFoundError,
        match=r"HEADRACE_SPARK_JARS is .*/one/none, which holds no \.jar file: let it name .* or unset it",
    ):
        spark_jars()


def test_where_there_are_none_the_command_that_fetches_them_is_told(folder: Folder, tmp_path: Path) -> None:
    told = rf"HEADRACE_SPARK_JARS is not set, {tmp_path}/cache has no folder spark-jars-\.\.\..*Run `make spark-jars`"
    with pytest.raises(FileNotFoundError, match=told):
        spark_jars()
    folder(f"spark-jars-{SPARK}-2-1", "a.jar")
    with pytest.raises(FileNotFoundError, match="Run `make spark-s3-jars`"):
        spark_jars(on_s3=True)


def test_a_spark_that_has_them_needs_none(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    own = folder("jars", "delta-spark_4.2_2.13-4.4.0.jar", within="own")
    monkeypatch.setenv("SPARK_HOME", str(own.parent))
    assert spark_jars() is None


def test_of_a_spark_elsewhere_nothing_is_said(folder: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_SPARK_PYTHON", "/elsewhere/python")
    assert spark_jars(on_s3=True) is None
    monkeypatch.setenv("HEADRACE_SPARK_PYTHON", sys.executable)
    with pytest.raises(FileNotFoundError):
        spark_jars()
