"""The Java that Spark's own scripts would take."""

from __future__ import annotations

from pathlib import Path

import pytest

from contract.java import java_missing, java_program


def program(folder: Path) -> Path:
    file = folder / "java"
    folder.mkdir(parents=True)
    file.touch(mode=0o755)
    return file


def test_the_one_of_java_home_wins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, path = program(tmp_path / "home" / "bin"), program(tmp_path / "path")
    monkeypatch.setenv("PATH", str(path.parent))
    monkeypatch.setenv("JAVA_HOME", str(home.parents[1]))
    assert java_program() == str(home)
    monkeypatch.setenv("JAVA_HOME", "")
    assert java_program() == str(path)


def test_where_there_is_none_it_says_where_it_looked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(program(tmp_path / "path").parent))
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    assert (java_program(), java_missing()) == (None, f"JAVA_HOME is {tmp_path}, which has no bin/java"), (
        "Spark would not start"
    )
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME")
    assert (java_program(), java_missing()) == (None, "there is no java on PATH, and JAVA_HOME is not set")
