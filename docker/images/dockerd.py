"""Images by a Docker engine (BuildKit), and a container on the machine's own network."""

from __future__ import annotations

import json
import signal
import subprocess
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from docker.images.command import output, run_logged
from docker.images.container import Container, volumes

Mounts = Sequence[tuple[Path, str]]


def answers() -> bool:
    """Whether a Docker engine is there: the client alone builds nothing."""
    try:
        done = subprocess.run(["docker", "version", "--format", "{{.Server.Version}}"], capture_output=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


class Docker:
    """The engine where Docker answers. Everything raises StackError."""

    name = "docker"

    def __init__(self, log: Path) -> None:
        self.log = log

    def build(self, dockerfile: Path, tag: str, contexts: Mapping[str, Path], folder: Path) -> None:
        """Builds `tag` from the Dockerfile, with `folder` as context and `contexts` as further ones."""
        words = ["docker", "buildx", "build", "--load", "--progress", "plain", "--tag", tag, "--file", str(dockerfile)]
        for name, path in contexts.items():
            words += ["--build-context", f"{name}={path}"]
        run_logged(tag, [*words, str(folder)], self.log, "The build needs Docker's buildx plugin.")

    def size(self, tag: str) -> int:
        """Bytes of the image, unpacked."""
        return int(output(["docker", "image", "inspect", "--format", "{{.Size}}", tag]))

    def config(self, tag: str) -> dict[str, Any]:
        """The image's settings under Docker's names: Entrypoint, Healthcheck, User ..."""
        found: dict[str, Any] = json.loads(output(["docker", "image", "inspect", "--format", "{{json .Config}}", tag]))
        return found

    def start(self, tag: str, words: Sequence[str], mounts: Mounts, log: Path) -> Container:
        return DockerContainer(tag, words, mounts, log)


class DockerContainer(Container):
    """`docker run` in the foreground: its exit status is the container's."""

    def __init__(self, tag: str, words: Sequence[str], mounts: Mounts, log: Path) -> None:
        self.id = f"headrace-{uuid.uuid4().hex[:12]}"
        command = ["docker", "run", "--rm", "--network", "host", "--name", self.id, *volumes(mounts), tag, *words]
        super().__init__(tag, command, log)

    def inside(self, words: Sequence[str]) -> list[str]:
        return ["docker", "exec", self.id, *words]

    def send(self, number: signal.Signals) -> None:
        subprocess.run(["docker", "kill", "--signal", number.name, self.id], capture_output=True)

    def remove(self) -> None:
        """Docker has done it (--rm)."""
