"""What keeps the names of a folder's files over a power cut."""

from __future__ import annotations

import os
from pathlib import Path


def sync_folder(folder: Path | str) -> None:
    """Names that were made, changed or removed in it are durable then. Raises OSError."""
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
