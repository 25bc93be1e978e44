"""Files that a pipeline file names: nothing without an end, such as a device or a pipe, is read."""

from __future__ import annotations

import errno
from pathlib import Path


def read(path: Path, limit: int) -> str:
    """UTF-8 text of at most `limit` bytes. Raises OSError, UnicodeDecodeError."""
    if path.exists() and not path.is_file():
        raise OSError(errno.EINVAL, "it is no regular file")
    with path.open("rb") as file:
        found = file.read(limit + 1)
    if len(found) > limit:
        raise OSError(errno.EFBIG, f"it is larger than {limit} bytes")
    return found.decode("utf-8")
