"""What makes a file durable, and one process at a time its owner."""

from __future__ import annotations

import errno
import fcntl
import os
import tempfile
from contextlib import suppress
from pathlib import Path

from contract.durable import sync_folder

NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


def make_durable(number: int, durable: int) -> None:
    """The open file's bytes, of which the first `durable` are so already. Raises OSError (EIO), and cuts the file back
    to those: the kernel tells of a page that it could not write once, and says yes to whoever asks again."""
    try:
        os.fsync(number)
    except OSError as error:
        with suppress(OSError):
            os.ftruncate(number, durable)
        raise OSError(errno.EIO, f"what was written did not reach the disk ({error.strerror})") from None


def make_folder(folder: Path) -> None:
    """With the folders above it, durably. Raises OSError."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)


def obstacle(folder: Path) -> str:
    """Why no file could be written into the folder, which need not be there yet; empty where nothing is known."""
    try:
        there = next(one for one in (folder.absolute(), *folder.absolute().parents) if one.exists())
    except OSError as error:  # its name is too long, for one
        return f"{folder} can be no folder: {error.strerror}"
    if not there.is_dir():
        return f"{there} is no folder"
    if not os.access(there, os.W_OK | os.X_OK):
        return f"{there} may not be written"
    try:
        tempfile.TemporaryFile(dir=there).close()  # root may write anywhere, and some systems of files take nothing
    except OSError as error:
        return f"{there} takes no file: {error.strerror}"
    return ""


def replace(path: Path, data: bytes) -> None:
    """The file has all of the data then, durably, or is as it was. Raises OSError."""
    beside = path.with_name(f".{path.name}.new")
    with beside.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    beside.rename(path)
    sync_folder(path.parent)


def lock(path: Path) -> int | None:
    """The descriptor that holds the lock until it is closed; None where another process has it. Raises OSError."""
    number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    if flock(number):
        return number
    os.close(number)
    return None


def flock(number: int) -> bool:
    try:
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
