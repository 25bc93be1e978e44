"""Images without a container engine: buildah in a chroot, as root, with a store of its own under the cache."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

from docker.images import base
from docker.images.command import output, run_logged
from docker.images.container import Container, volumes
from stack.errors import StackError

Mounts = Sequence[tuple[Path, str]]
INSTALL = "apt-get install -y --no-install-recommends buildah debootstrap"
# How this machine reaches its package index may need its own certificates and pip's settings; the build
# sees them read-only, and of what they say nothing stays in the image.
MACHINE_FILES = ("/etc/ssl/certs/ca-certificates.crt", "/etc/pip.conf")


class Buildah:
    """The engine where there is no Docker. `store` holds images and layers. Everything raises StackError."""

    name = "buildah"

    def __init__(self, store: Path, log: Path) -> None:
        self.log = log
        self.options = ["--root", str(store / "storage"), "--runroot", str(store / "run")]
        install_missing(log)

    def command(self, *words: str) -> list[str]:
        return ["buildah", *self.options, *words]

    def holds(self, tag: str) -> bool:
        return subprocess.run(self.command("inspect", "--type", "image", tag), capture_output=True).returncode == 0

    def build(self, dockerfile: Path, tag: str, contexts: Mapping[str, Path], folder: Path) -> None:
        """Builds `tag` from the Dockerfile, with `folder` as context and `contexts` as further ones."""
        words = ["build", "--isolation", "chroot", "--format", "docker", "--tag", tag, "--file", str(dockerfile)]
        words += ["--build-arg", f"BASE={base.ensure(self, self.log)}"]
        if self._driver() == "overlay":  # elsewhere each layer would be a full copy
            words.append("--layers")
        for file in filter(os.path.exists, MACHINE_FILES):
            words += ["--volume", f"{file}:{file}:ro"]
        for name, path in contexts.items():
            words += ["--build-context", f"{name}={path}"]
        run_logged(tag, self.command(*words, str(folder)), self.log)

    def size(self, tag: str) -> int:
        """Bytes of the image, unpacked."""
        found = json.loads(output(self.command("images", "--json", tag)))
        return parse_size(found[0]["size"])

    def config(self, tag: str) -> dict[str, Any]:
        """The image's settings under Docker's names: Entrypoint, Healthcheck, User ..."""
        inspected = json.loads(output(self.command("inspect", "--type", "image", tag)))
        found: dict[str, Any] = inspected["Docker"]["config"]
        return found

    def start(self, tag: str, words: Sequence[str], mounts: Mounts, log: Path) -> Container:
        return BuildahContainer(self, tag, words, mounts, log)

    def _driver(self) -> str:
        driver: str = json.loads(output(self.command("info")))["store"]["GraphDriverName"]
        return driver


class BuildahContainer(Container):
    """A working container of buildah, in which its `run` starts the processes."""

    def __init__(self, engine: Buildah, tag: str, words: Sequence[str], mounts: Mounts, log: Path) -> None:
        self.engine, self.mounts = engine, mounts
        self.family: list[psutil.Process] = []
        self.id = output(engine.command("from", "--pull-never", tag))
        super().__init__(tag, self.inside([*engine.config(tag)["Entrypoint"], *words]), log)

    def inside(self, words: Sequence[str]) -> list[str]:
        # The chroot has the machine's /etc/hosts, in which the name that buildah would give it is not found.
        run = ["run", "--isolation", "chroot", "--hostname", "localhost", *volumes(self.mounts), self.id, "--"]
        return self.engine.command(*run, *words)

    def send(self, number: signal.Signals) -> None:
        """To the container's first process; buildah stands around it as several of its own."""
        self.family = psutil.Process(self.child.pid).children(recursive=True)
        with contextlib.suppress(psutil.NoSuchProcess, StopIteration):
            next(process for process in self.family if not is_buildah(process)).send_signal(number)

    def remove(self) -> None:
        """A chroot ends no processes with the first one, as a container of Docker's does: that is done here."""
        for process in self.family:
            with contextlib.suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(self.family, timeout=10)
        subprocess.run(self.engine.command("rm", self.id), capture_output=True)


def is_buildah(process: psutil.Process) -> bool:
    return process.cmdline()[:1] == ["buildah"] or process.cmdline()[0].startswith("buildah-chroot")


def install_missing(log: Path) -> None:
    missing = [name for name in ("buildah", "debootstrap") if shutil.which(name) is None]
    if not missing:
        return
    problem = f"no Docker engine answers, and {' and '.join(missing)} is not installed"
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        raise StackError(problem, f"Start Docker, or on Debian or Ubuntu run as root: {INSTALL}")
    print(f"  {problem}: {INSTALL}", flush=True)
    run_logged("apt", ["apt-get", "update"], log)
    run_logged("apt", ["env", "DEBIAN_FRONTEND=noninteractive", *INSTALL.split()], log)


def parse_size(text: str) -> int:
    """Bytes of buildah's `270 MB`."""
    number, _, unit = text.partition(" ")
    return int(float(number) * {"B": 1, "KB": 1e3, "MB": 1e6, "GB": 1e9}[unit.upper()])
