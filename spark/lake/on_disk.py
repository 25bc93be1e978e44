"""What is at a place on the disk, where something is: of what a power cut may have taken away nothing is an error."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path


def inside(folder: Path) -> list[Path]:
    """None where it is no folder, or one that others keep to themselves."""
    with suppress(OSError):
        return [*folder.iterdir()]
    return []


def written(file: Path) -> int:
    """0 where there is none, or it has gone meanwhile."""
    with suppress(OSError):
        return file.stat().st_mtime_ns
    return 0


def length(file: Path) -> int:
    """-1 where there is none."""
    with suppress(FileNotFoundError, NotADirectoryError):
        return file.stat().st_size
    return -1
