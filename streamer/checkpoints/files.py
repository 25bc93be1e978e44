"""Checkpoints and schemas as files of a folder: each replaced as a whole, fsynced with its folder.

A file's last line is the checksum of what is before it, so that a damaged one is refused and never resumed from.
"""

from __future__ import annotations

import os
import re
import zlib
from collections.abc import Mapping
from pathlib import Path

from contract.pipeline_sinks import FileCheckpoint
from streamer.checkpoints.documents import DAMAGED
from streamer.delivery_errors import AwayError, CheckpointError
from streamer.disk import NO_ROOM, lock, make_folder, replace
from streamer.errors import HeadraceError

LOCK = ".lock"
SUFFIX = ".json"
CHECKSUM = re.compile(r"(.*)\ncrc32 ([0-9a-f]{8})\n", re.DOTALL)


class FileDocuments:
    """The port `Documents` over a folder, which one process at a time may write into: from its first look on, where it
    is not to be `shared`. Raises CheckpointError and, where the disk is full, AwayError."""

    def __init__(self, place: FileCheckpoint, shared: bool = False) -> None:
        self._folder = place.path
        self._shared = shared
        self._lock: int | None = None

    def read(self) -> Mapping[str, str]:
        if not self._shared:
            self._take()
        return read(self._folder)

    def write(self, key: str, text: str) -> None:
        self._take()
        try:
            replace(self._folder / (key.replace(" ", "+") + SUFFIX), f"{text}\ncrc32 {_checksum(text)}\n".encode())
        except OSError as error:
            raise _disk_error(self._folder, error) from None

    def close(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def _take(self) -> None:
        if self._lock is not None:
            return
        try:
            make_folder(self._folder)
            self._lock = lock(self._folder / LOCK)
        except OSError as error:
            raise _disk_error(self._folder, error) from None
        if self._lock is None:
            hint = "Stop the other streamer, or give each pipeline a folder of its own (checkpoints)."
            raise CheckpointError("keeping the position in", str(self._folder), "another process does so now", hint)


def read(folder: Path) -> dict[str, str]:
    """All documents, whoever writes them now. Raises CheckpointError for a damaged one."""
    try:
        texts = {path: path.read_bytes() for path in sorted(folder.glob(f"*{SUFFIX}"))}
    except OSError as error:
        raise _disk_error(folder, error) from None
    return dict(_document(path, data) for path, data in texts.items())


def _document(path: Path, data: bytes) -> tuple[str, str]:
    found = CHECKSUM.fullmatch(data.decode(errors="replace"))
    if found is None or _checksum(found[1]) != found[2]:
        raise CheckpointError(
            "reading", str(path), "the file is damaged: its checksum is not that of its text", DAMAGED
        )
    return path.name.removesuffix(SUFFIX).replace("+", " "), found[1]


def _checksum(text: str) -> str:
    return f"{zlib.crc32(text.encode()):08x}"


def _disk_error(folder: Path, error: OSError) -> HeadraceError:
    cause = error.strerror or type(error).__name__
    if error.errno in NO_ROOM:
        return AwayError("keeping the position in", str(folder), cause, "Make room; the stream goes on by itself.")
    hint = "See that the folder is there and may be written, then start again."
    return CheckpointError("keeping the position in", str(folder), cause, hint)
