"""`stack/prerequisites.sh` on machines that lack something: a PATH with just the programs named."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from stack.paths import CHECKOUT

TOOLS = ("sh", "sed", "head", "id", "grep", "cat", "tr")
JAVA_17 = "#!/bin/sh\necho 'openjdk version \"17.0.15\" 2025-04-15' >&2\n"
JAVA_11 = "#!/bin/sh\necho 'openjdk version \"11.0.1\" 2018-10-16' >&2\n"


class Machine:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        for tool in TOOLS:
            (folder / tool).symlink_to(shutil.which(tool) or tool)
        self.program("id", "#!/bin/sh\necho 1000\n")

    def program(self, name: str, text: str = "#!/bin/sh\nexit 0\n") -> None:
        path = self.folder / name
        path.unlink(missing_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def python(self) -> None:
        self.program("python3", f'#!/bin/sh\nexec {sys.executable} "$@"\n')

    def look(self, **settings: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", str(CHECKOUT / "stack" / "prerequisites.sh")],
            env={"PATH": str(self.folder), **settings},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
        )


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "bin")


def test_a_machine_with_everything_gives_its_python(machine: Machine) -> None:
    machine.python()
    machine.program("java", JAVA_17)
    machine.program("mvn")
    machine.program("mysqld")
    found = machine.look()
    assert (found.returncode, found.stderr) == (0, "")
    assert Path(found.stdout.strip()).resolve() == Path(sys.executable).resolve()


def test_the_one_line_names_all_that_is_missing(machine: Machine) -> None:
    machine.program("apt-get")
    machine.program("apt-cache")
    machine.program("java", JAVA_11)
    found = machine.look(HEADRACE_MYSQLD="/usr/sbin/mysqld")
    assert found.returncode == 1
    lines = found.stderr.splitlines()
    assert len(lines) == 2
    assert lines[1] == (
        "headrace:     sudo apt-get update && sudo apt-get install -y "
        "python3.12 python3.12-venv openjdk-17-jdk-headless maven"
    )


def test_without_java_17_among_the_packages_a_newer_one_is_named(machine: Machine) -> None:
    machine.python()
    machine.program("apt-get")
    machine.program("apt-cache", '#!/bin/sh\n[ "$2" = openjdk-21-jdk-headless ]\n')
    machine.program("mvn")
    found = machine.look(HEADRACE_MYSQLD="/usr/sbin/mysqld")
    assert found.stderr.splitlines()[1].endswith("install -y openjdk-21-jdk-headless")


def test_as_root_it_installs_the_missing_ones_itself(machine: Machine, tmp_path: Path) -> None:
    machine.python()
    machine.program("id", "#!/bin/sh\necho 0\n")
    machine.program("apt-cache")
    machine.program("java", JAVA_17)
    machine.program("mysqld")
    calls = tmp_path / "calls"
    for word in ("chmod", "touch"):
        (machine.folder / word).symlink_to(shutil.which(word) or word)
    maven = machine.folder / "mvn"
    effect = f'case "$*" in *install*) touch {maven}; chmod +x {maven};; esac'
    machine.program("apt-get", f'#!/bin/sh\necho "$@" >> {calls}\n{effect}\n')
    found = machine.look()
    assert found.returncode == 0, found.stderr
    assert found.stdout.count(os.linesep) == 1
    assert calls.read_text().splitlines() == ["update -q", "install -q -y --no-install-recommends maven"]


def test_where_there_is_no_apt_both_ways_to_mysql_are_told(machine: Machine) -> None:
    machine.python()
    machine.program("java", JAVA_17)
    machine.program("mvn")
    found = machine.look()
    assert found.returncode == 1
    assert "mysqld on PATH, or named by HEADRACE_MYSQLD" in found.stderr
