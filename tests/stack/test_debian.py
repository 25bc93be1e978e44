from __future__ import annotations

from pathlib import Path

import pytest

from stack import debian, versions
from stack.errors import StackError


def test_the_mirror_is_the_machines_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADRACE_DEBIAN_MIRROR", raising=False)
    apt = tmp_path / "apt-get"
    apt.write_text(
        "#!/bin/sh\n"
        "printf 'Debian\\tDebian-Security\\tmirror:/security/\\n'\n"
        "printf 'Debian\\tDebian\\tmirror:/debian/\\n'\n"
    )
    apt.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert debian.mirror() == "mirror:/debian/"


def test_a_mirror_can_be_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADRACE_DEBIAN_MIRROR", "file:/srv/debian")
    assert debian.mirror() == "file:/srv/debian"


@pytest.mark.parametrize(
    "line",
    [
        "deb mirror:/x/debian sid main",
        "deb [arch=amd64 trusted=yes] mirror:/x/debian/ sid main",
        "URIs: mirror:/x/debian",
    ],
)
def test_before_the_first_update_the_source_files_are_read(
    line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sources.list").write_text(f"# a comment\n{line}\n")
    monkeypatch.setattr(debian, "APT", tmp_path)
    found = debian.configured_mirror()
    assert found
    assert found.group(1) == "mirror:/x/debian"


def test_a_machine_without_debians_keyring_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(debian, "KEYRING", tmp_path / "none.gpg")
    with pytest.raises(StackError, match=r"keyring .* is missing.*Install the package debian-archive-keyring"):
        debian.source_line()


def test_a_machine_without_apt_is_told_of_the_other_way(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(StackError, match=r"need apt-get.*HEADRACE_MYSQLD"):
        debian.unpack(tmp_path)


def test_a_package_that_did_not_come_is_named(tmp_path: Path) -> None:
    with pytest.raises(StackError, match="no package mysql-client-core"):
        debian.package_versions([tmp_path / "mysql-server-core_9.7.4-2_amd64.deb"], versions.MYSQL_PACKAGES)
