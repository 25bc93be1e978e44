"""What `headrace check` says of the lake's folder, and of what starts its jobs."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from contract.pipeline import Lake, Pipeline
from streamer.preflight import lake as preflight
from streamer.preflight.findings import Result
from tests.streamer.fakes import pipeline


def of(path: Path) -> Pipeline:
    return pipeline().model_copy(update={"lake": Lake(path=str(path))})


def found(subject: str, path: Path) -> Result:
    [one] = [result for result in preflight.lake(of(path)) if result.subject == subject]
    return one


def java(folder: Path, said: str) -> Path:
    program = folder / "bin" / "java"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\necho '{said}' >&2\n")
    program.chmod(0o755)
    return folder


def test_a_folder_that_cannot_be_written_is_told_with_its_name(tmp_path: Path) -> None:
    well = found("lake", tmp_path / "not" / "yet")
    assert (well.level, well.text) == ("ok", f"the folder {tmp_path}/not/yet/sales may be written")
    (tmp_path / "file").write_text("x")
    wrong = found("lake", tmp_path / "file")
    assert (wrong.level, "is no folder" in wrong.text) == ("warning", True)
    assert wrong.next_step.startswith("Mend lake.path")
    nothing = found("lake", Path("/proc/nowhere"))  # which root may write, and nobody can
    assert (nothing.level, nothing.text.startswith("the folder /proc/nowhere/sales: /proc ")) == ("warning", True)


def test_the_lake_of_another_pipeline_is_no_folder_for_one(tmp_path: Path) -> None:
    (tmp_path / "_status.json").write_text("{}")
    wrong = found("lake", tmp_path)
    assert (wrong.level, wrong.text) == (
        "warning",
        f"lake.path is {tmp_path}, which is itself the lake of a pipeline: tables of the two would meet",
    )


def test_a_lake_of_which_nobody_but_spark_can_read_how_it_stands_is_told() -> None:
    elsewhere = pipeline().model_copy(update={"lake": Lake(path="hdfs://h:9000/lake")})
    [one] = [result for result in preflight.lake(elsewhere) if result.subject == "lake"]
    assert (one.level, one.text.partition(":")[0]) == ("warning", "hdfs")
    assert "in no folder, nor on S3" in one.text


def test_a_check_that_would_wait_in_vain_for_a_rare_compaction_is_told(tmp_path: Path) -> None:
    asked = of(tmp_path)

    def told(schedule: str | None) -> list[Result]:
        rules = asked.compaction.model_copy(update={"schedule": schedule})
        both = preflight.lake(asked.model_copy(update={"compaction": rules}))
        return [one for one in both if "compaction.schedule" in one.text]

    assert told(None) == told("*/10 * * * *") == []
    [hourly] = told("@hourly")
    assert (hourly.level, hourly.subject) == ("warning", "lake")
    assert "leaves up to 3,600 s between two runs, and a check waits 600 s" in hourly.text
    assert hourly.next_step.startswith("Write quality.wait_seconds of 3,600")


def test_jars_that_were_not_fetched_are_told_with_what_fetches_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADRACE_SPARK_JARS", str(tmp_path))
    lacking = found("spark", tmp_path)
    assert (lacking.level, "make spark-jars" in lacking.text) == ("warning", True)
    (tmp_path / "delta-spark.jar").write_text("")
    assert found("spark", tmp_path).level == "ok"


@pytest.mark.parametrize(
    ("said", "level", "told"),
    [
        ('openjdk version "17.0.15" 2025-04-15', "ok", "is Java 17"),
        ('openjdk version "21" 2023-09-19', "ok", "is Java 21"),
        ('java version "1.8.0_402"', "warning", "is Java 8, and Spark needs 17"),
        ("no JVM", "warning", "of a version that it does not tell"),
    ],
)
def test_the_java_that_spark_would_take_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str, level: str, told: str
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java(tmp_path, said)))
    one = found("java", tmp_path)
    assert (one.level, told in one.text) == (level, True), one


def test_no_java_is_told_and_no_spark_is_none_to_mend(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert found("java", tmp_path).next_step.startswith("Install a JDK 17.")
    monkeypatch.setenv("JAVA_HOME", os.devnull)
    assert f"JAVA_HOME is {os.devnull}, which has no bin/java" in found("java", tmp_path).text
    monkeypatch.setattr(preflight.importlib.util, "find_spec", lambda _: None)
    assert [(one.level, one.subject) for one in preflight.lake(of(tmp_path))] == [("ok", "lake"), ("ok", "spark")]


def test_of_a_pipeline_that_feeds_no_lake_nothing_is_said(tmp_path: Path) -> None:
    given = of(tmp_path).model_dump() | {"sinks": [{"type": "stdout"}], "checkpoints": {"type": "file", "path": "p"}}
    given["source"] = {"host": "h", "user": "u", "password": "p", "server_id": 7}
    assert [*preflight.lake(Pipeline.model_validate(given))] == []
