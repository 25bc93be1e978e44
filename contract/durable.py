"""What keeps files, and the names of a folder's files, over a power cut."""

from __future__ import annotations

import ctypes
import os
from pathlib import Path

LIBRARY = ctypes.CDLL(None, use_errno=True)


def sync_folder(folder: Path | str) -> None:
    """Names that were made, changed or removed in it are durable then. Raises OSError."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def sync_all(folder: Path | str) -> None:
    """Everything that any process has written to the folder's file system by now is durable then (syncfs(2) of Linux;
    elsewhere all file systems are asked, which may not wait for the disk). Raises OSError, also where some of it could
    not be written."""
    if not hasattr(LIBRARY, "syncfs"):
        return os.sync()
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if LIBRARY.syncfs(number):
            problem = ctypes.get_errno()
            raise OSError(problem, os.strerror(problem), str(folder))
    finally:
        os.close(number)
