"""The file of alerts: a JSON object a line, oldest first, which several processes append to, and which stays small.

Behind MOST bytes it keeps its newest lines, and of each task the newest one however old it is: what is at fault is
known by that (plugins/headrace/earlier.py). A kill leaves the file as it was before or behind, or with a last line that
has no end; who reads it meanwhile sees the one or the other.
"""

from __future__ import annotations

import fcntl
import json
import os
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

TIMES = 10  # looked for the file that is there; one on a server may never be known for the same
MOST, KEPT = 4 << 20, 2 << 20  # bytes; KEPT is some thousand lines, or of 200 tables each 50


def append(path: Path, line: bytes) -> None:
    """Raises OSError."""
    for left in reversed(range(TIMES)):
        with path.open("ab+", buffering=0) as file:
            alone = _locked(file)
            if alone and left and not _is_at(file, path):
                continue  # another one has shortened it meanwhile: this is the file of before
            file.write(b"\n" * _cut(file) + line + b"\n")  # in one write: lines of two tasks do not mix
            if alone and file.seek(0, os.SEEK_END) > MOST:
                with suppress(OSError):  # the line is there; the next one tries it again
                    _shorten(path)
            return


def _locked(file: BinaryIO) -> bool:
    """Whether nobody else writes it until it is closed. A folder on a server may have no locks: the file then grows."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
    except OSError:
        return False
    return True


def _is_at(file: BinaryIO, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(file.fileno()), path.stat())
    except FileNotFoundError:
        return False


def _cut(file: BinaryIO) -> bool:
    """Whether the last line has no end, as a full disk leaves it."""
    file.seek(max(file.seek(0, os.SEEK_END) - 1, 0))
    return file.read() not in (b"", b"\n")


def _shorten(path: Path) -> None:
    draft = path.with_suffix(".shorter")  # one at a time: who writes it has the lock
    with draft.open("wb") as file:
        file.writelines(newest(path.read_bytes().splitlines(keepends=True)))
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)


def newest(lines: list[bytes]) -> list[bytes]:
    """Those of the lines that are kept, in their order."""
    kept, size, seen = list[bytes](), 0, set[tuple[object, object]]()
    for line in reversed(lines):
        size += len(line)
        task = _task(line)
        if size <= KEPT or (task is not None and task not in seen):
            kept.append(line)
        seen |= {task} if task else set()
    return kept[::-1]


def _task(line: bytes) -> tuple[object, object] | None:
    """None where it was not written whole."""
    with suppress(ValueError):
        if isinstance(alert := json.loads(line), dict):
            return str(alert.get("dag")), str(alert.get("task"))
    return None
