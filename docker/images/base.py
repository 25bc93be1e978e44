"""The base image where no registry of images is asked: Debian with Python, made from the machine's own mirror."""

from __future__ import annotations

import os
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from docker.images.command import output, run_logged
from stack import debian
from stack.errors import StackError

if TYPE_CHECKING:
    from docker.images.buildah import Buildah

# The same release as that of the Dockerfiles' default base: Python 3.11, and a Java 17 in its packages.
SUITE = "bookworm"
TAG = f"localhost/headrace-base:{SUITE}"
PACKAGES = "python3,python3-venv,ca-certificates"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# A package's cache, lists and logs are of no use in an image.
DROPPED = ("var/cache/apt/archives", "var/lib/apt/lists", "var/log")


def ensure(engine: Buildah, log: Path) -> str:
    """The tag of the base image, made at the first call. Raises StackError."""
    if engine.holds(TAG):
        return TAG
    if os.geteuid() != 0:
        raise StackError("debootstrap makes the base image as root only", "Run `sudo make images`, or install Docker.")
    print("  base: debootstrap of Debian " + SUITE, flush=True)
    with tempfile.TemporaryDirectory(prefix="headrace-base-") as folder:
        root = Path(folder) / "root"
        command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, str(root), debian.mirror()]
        run_logged("base", command, log, "HEADRACE_DEBIAN_MIRROR names another mirror.")
        archive = Path(folder) / "base.tar"
        with tarfile.open(archive, "w") as tar:
            tar.add(root, arcname=".", filter=kept)
        take(engine, archive)
    return TAG


def kept(member: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Everything but the contents of DROPPED (the folders themselves stay: apt wants them)."""
    path = member.name.removeprefix("./")
    inside = any(path.startswith(f"{folder}/") for folder in DROPPED)
    return None if inside and member.isfile() else member


def take(engine: Buildah, archive: Path) -> None:
    container = output(engine.command("from", "scratch"))
    try:
        output(engine.command("add", "--quiet", container, str(archive), "/"))
        output(engine.command("config", "--env", f"PATH={PATH}", "--cmd", "python3", container))
        output(engine.command("commit", "--quiet", "--format", "docker", container, TAG))
    finally:
        subprocess.run(engine.command("rm", container), capture_output=True)
