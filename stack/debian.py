"""MySQL, and MariaDB's clients, out of Debian packages, unpacked without root, the machine's own apt state untouched.

The mirror is the one that this machine's apt uses already, asked for the unstable distribution; the
signature is checked with the Debian archive keyring.
"""

from __future__ import annotations

import logging
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from stack import versions
from stack.errors import StackError
from stack.fetch import DownloadError, run_client

log = logging.getLogger("stack")
APT = Path("/etc/apt")
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
OWN_SERVER = (
    "Install a MySQL 9.7 server so that `mysqld` is on PATH, or name its program in HEADRACE_MYSQLD. "
    "HEADRACE_DEBIAN_MIRROR names a Debian mirror for apt to use."
)


def unpack(folder: Path, title: str = "MySQL", wanted: Sequence[str] = versions.MYSQL_PACKAGES) -> dict[str, str]:
    """Downloads the packages and what they need, and unpacks them into `folder`. Facts: their versions."""
    if shutil.which("apt-get") is None or shutil.which("dpkg-deb") is None:
        raise StackError(f"{title}: the packages need apt-get and dpkg-deb, which this machine has not", OWN_SERVER)
    work = folder / ".apt"
    options = apt_state(work)
    hint = f"Try again later, or: {OWN_SERVER}"
    log.info("%s: reading Debian's package list", title)
    run_client(f"{title}: package list", ["apt-get", *options, "update"], hint)
    log.info("%s: downloading the packages", title)
    download = ["install", "-y", "--download-only", "--no-install-recommends", *wanted]
    run_client(f"{title}: packages", ["apt-get", *options, *download], hint)
    packages = sorted((work / "cache" / "archives").glob("*.deb"))
    for package in packages:
        run_client(package.name, ["dpkg-deb", "-x", str(package), str(folder)], hint)
    shutil.rmtree(work)
    return package_versions(packages, wanted)


def loader(root: Path) -> list[str]:
    """The start of a command line that runs a program with the C library and the other libraries of the packages in
    `root`, which are newer than the machine's may be."""
    libraries = sorted({str(path.parent) for path in root.glob("usr/lib/*-linux-gnu*/libc.so.6")})
    found = next(iter(sorted(root.glob("usr/lib*/ld-linux*.so.*"))), None)
    if found is None or not libraries:
        raise StackError(f"the packages in {root} hold no C library", f"Remove {root} and start again.")
    paths = [*libraries, *(path.replace("/usr/lib/", "/lib/") for path in libraries)]
    return [str(found), "--library-path", ":".join(paths)]


def apt_state(work: Path) -> list[str]:
    """A state of apt of its own under `work`: options that keep it off the machine's."""
    for name in ("state/lists/partial", "cache/archives/partial"):
        (work / name).mkdir(parents=True)
    (work / "status").touch()
    (work / "sources.list").write_text(source_line())
    settings = {
        "Dir::State": work / "state",
        "Dir::State::status": work / "status",
        "Dir::Cache": work / "cache",
        "Dir::Etc::sourcelist": work / "sources.list",
        "Dir::Etc::sourceparts": "-",
        "Acquire::Languages": "none",
        "Acquire::Retries": "3",
        "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled": "false",
        # As root apt would change to a user who may not enter this folder.
        "APT::Sandbox::User": "root",
    }
    return [f"-o{key}={value}" for key, value in settings.items()]


def source_line() -> str:
    if not KEYRING.exists():
        raise StackError(
            f"Debian's keyring {KEYRING} is missing, so MySQL's packages cannot be checked",
            f"Install the package debian-archive-keyring. Or: {OWN_SERVER}",
        )
    return f"deb [signed-by={KEYRING}] {mirror()} {versions.DEBIAN_SUITE} main\n"


def mirror() -> str:
    """The Debian mirror that this machine's apt fetches from. Raises StackError where it has none."""
    given = os.environ.get("HEADRACE_DEBIAN_MIRROR")
    if given:
        return given
    targets = subprocess.run(
        ["apt-get", "indextargets", "--format", "$(ORIGIN)\t$(LABEL)\t$(REPO_URI)", "Created-By: Packages"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    ).stdout
    found = re.search(r"^Debian\tDebian\t(\S+)$", targets, re.MULTILINE)
    if found is None:
        found = configured_mirror()
    if found is None:
        raise StackError("this machine's apt has no Debian mirror, from which MySQL 9.7 would come", OWN_SERVER)
    return found.group(1)


def configured_mirror() -> re.Match[str] | None:
    """From the source files themselves: before the first `apt-get update` apt knows no origin."""
    files = [APT / "sources.list", *sorted((APT / "sources.list.d").glob("*"))]
    text = "\n".join(path.read_text(errors="replace") for path in files if path.is_file())
    pattern = r"^(?:URIs:\s*|deb\s+(?:\[[^\]]*\]\s*)?)(\S+/debian)/?(?:\s|$)"
    return re.search(pattern, text, re.MULTILINE)


def package_versions(packages: list[Path], wanted: Sequence[str]) -> dict[str, str]:
    named = (path.name.split("_")[:2] for path in packages)
    found = {name: version.replace("%3a", ":") for name, version in named}
    for name in wanted:
        if name not in found:
            raise DownloadError(f"apt downloaded no package {name}", OWN_SERVER)
    return found
