"""The binlog files of one server in a folder: those that are complete, and the open one.

One process at a time writes into an archive's folder: `locked`.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog

from contract.names import escape
from contract.sequence import file_number
from streamer.archive.errors import ArchiveFullError, ArchiveInUseError, ArchiveStoreError
from streamer.archive.files import HEAD_BYTES, PART
from streamer.disk import NO_ROOM, flock
from streamer.errors import HeadraceError

log = structlog.get_logger("streamer")
BINLOG = re.compile(r".+\.\d{6,}")  # such as binlog.000012
LOCK = "archive.lock"


class Folder:
    """`<root>/<the server's uuid>`, made where it is not there. Raises the errors of `explained`."""

    def __init__(self, root: Path, server_uuid: str) -> None:
        self.path = root / escape(server_uuid)
        with explained(self.path):
            self.path.mkdir(parents=True, exist_ok=True)

    def sizes(self) -> dict[str, int]:
        """The complete files, the oldest first, and their bytes."""
        return in_order({one.name: one.stat().st_size for one in self.path.iterdir()})

    def open_name(self) -> str | None:
        """The file that is not complete. One that is there both ways was completed by another process: the open form
        goes."""
        known = self.sizes()
        names = in_order({one.name.removesuffix(PART): 0 for one in self.path.glob("*" + PART)})
        left = [name for name in names if not known or file_number(name) > file_number(next(reversed(known)))]
        for name in names.keys() - set(left):
            log.warning("removed the open form of a file that is complete", file=name)
            (self.path / (name + PART)).unlink()
        return left[-1] if left else None

    def head(self, name: str) -> bytes:
        with (self.path / name).open("rb") as file:
            return file.read(HEAD_BYTES)


def in_order(sizes: dict[str, int]) -> dict[str, int]:
    """Of any files, those whose names are a binlog's."""
    return dict(sorted(((name, sizes[name]) for name in sizes if BINLOG.fullmatch(name)), key=_number))


def _number(item: tuple[str, int]) -> int:
    return file_number(item[0])


def following(name: str) -> str:
    """`binlog.000012` -> `binlog.000013`."""
    start, _, number = name.rpartition(".")
    return f"{start}.{int(number) + 1:0{len(number)}}"


@contextmanager
def locked(root: Path) -> Iterator[None]:
    """Raises ArchiveInUseError, and as `explained`."""
    with explained(root):
        root.mkdir(parents=True, exist_ok=True)
        number = os.open(root / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    try:
        if not flock(number):
            hint = "Stop the other one, or give this pipeline a folder of its own"
            raise ArchiveInUseError("archive into", str(root), "another process does so now", hint)
        yield
    finally:
        os.close(number)


def taken(root: Path) -> bool:
    """Whether a process archives into it."""
    try:
        number = os.open(root / LOCK, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not flock(number)
    finally:
        os.close(number)


@contextmanager
def explained(what: Path) -> Iterator[None]:
    """Turns the disk's errors into ArchiveFullError, which may pass, and ArchiveStoreError."""
    try:
        yield
    except OSError as error:
        raise disk_error(what, error) from None


def disk_error(what: Path, error: OSError) -> HeadraceError:
    cause = error.strerror or type(error).__name__
    if error.errno in NO_ROOM:
        hint = "Make room, or remove the oldest files that no restore needs; the archive goes on by itself"
        return ArchiveFullError("archive into", str(what), cause, hint)
    return ArchiveStoreError("archive into", str(what), cause, "See that the folder is there and may be written")
