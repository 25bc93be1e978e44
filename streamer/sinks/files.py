"""JSON-lines files in a folder a topic, closed by size and time.

The open file is `.<time>.jsonl.part`, which no `*.jsonl*` finds; a file that is closed is whole, durable and never
touched again. Acknowledged is what an fsync of the open file covers. What a crash leaves open is cut behind its last
whole line and closed by the next start, so a record that comes again stands in a later file.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog

from contract.durable import sync_folder
from contract.pipeline_sinks import Compression, FilesOutput
from streamer.compression import SUFFIX, compress_file
from streamer.delivery_errors import AwayError, SinkError
from streamer.disk import NO_ROOM, lock, make_durable, make_folder
from streamer.errors import HeadraceError
from streamer.sinks import names

log = structlog.get_logger("streamer")
LINES = ".jsonl"
PART = ".part"
LOCK = ".lock"
BLOCK = 1 << 16


class OpenFile:
    """`size`: bytes of whole lines; `synced`: durable ones. `since`: monotonic seconds of its first record."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.size = self.synced = 0
        self.since = time.monotonic()
        self._number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o640)

    def write(self, data: bytes) -> None:
        """All of it or nothing. Raises OSError."""
        left = memoryview(data)
        try:
            while left:
                left = left[os.write(self._number, left) :]
        except OSError:
            os.ftruncate(self._number, self.size)
            os.lseek(self._number, self.size, os.SEEK_SET)
            raise
        self.size += len(data)

    @property
    def dirty(self) -> bool:
        return self.synced < self.size

    def sync(self) -> None:
        """Raises OSError, after which the file is of no use."""
        if self.dirty:
            make_durable(self._number, self.synced)
            self.synced = self.size

    def close(self) -> None:
        os.close(self._number)


class FilesWriter:
    """The writer of `BackgroundSink`. One process at a time has the folder. Raises SinkError."""

    def __init__(self, output: FilesOutput) -> None:
        self.where = str(output.path)
        self._root = output.path
        self._output = output
        self._open: dict[str, OpenFile] = {}
        self._ended: list[Path] = []  # that do not have their names yet
        self._last: dict[str, str] = {}  # topic -> the time in its newest file's name
        self._synced = time.monotonic()
        with self._said():
            make_folder(self._root)
            self._lock = lock(self._root / LOCK)
        if self._lock is None:
            hint = "Stop the other one, or give each pipeline a folder of its own (sinks in the pipeline file)."
            raise SinkError("writing files into", self.where, "another process does so now", hint)
        with self._said():
            _repair(self._root, output.compression)

    def write(self, topic: str, data: bytes) -> None:
        with self._said():
            (self._open.get(topic) or self._begin(topic)).write(data)

    def due(self, now: float) -> bool:
        files = self._open.values()
        dirty = now - self._synced >= self._output.sync_seconds and any(file.dirty for file in files)
        return dirty or bool(self._ended) or any(self._full(file, now) for file in files)

    def sync(self) -> None:
        with self._said():
            for file in self._open.values():
                file.sync()
            now = self._synced = time.monotonic()
            for topic in [topic for topic, file in self._open.items() if self._full(file, now)]:
                self._end(topic)
            self._finish()

    def close(self) -> None:
        with self._said():
            for topic in list(self._open):
                self._open[topic].sync()
                self._end(topic)
            self._finish()
        if self._lock is not None:
            os.close(self._lock)

    def _full(self, file: OpenFile, now: float) -> bool:
        return file.size >= self._output.max_bytes or now - file.since >= self._output.max_seconds

    def _begin(self, topic: str) -> OpenFile:
        folder = self._root / names.folder_of(topic)
        if topic not in self._last:
            make_folder(folder)
            self._last[topic] = max((names.stem_of(name) for name in os.listdir(folder)), default="")
        stem = self._last[topic] = names.after(self._last[topic])
        file = OpenFile(folder / f".{stem}{LINES}{PART}")
        sync_folder(folder)
        self._open[topic] = file
        return file

    def _end(self, topic: str) -> None:
        """What the file holds is durable already."""
        file = self._open.pop(topic)
        file.close()
        self._ended.append(file.path)

    def _finish(self) -> None:
        """May be asked again where the disk had no room."""
        while self._ended:
            finish(self._ended[0], self._output.compression)
            del self._ended[0]

    @contextmanager
    def _said(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise disk_error(self.where, error) from None


def finish(part: Path, how: Compression) -> None:
    """Gives a durable open file its name, compressed as asked. Raises OSError."""
    final = part.with_name(part.name.removesuffix(PART).removeprefix(".") + SUFFIX[how])
    if how == "none":
        part.rename(final)
    else:
        beside = part.with_name(f".{final.name}.new")
        compress_file(part, beside, how)
        with beside.open("rb") as file:
            os.fsync(file.fileno())
        beside.rename(final)
        sync_folder(part.parent)
        part.unlink()
    sync_folder(part.parent)


def _repair(root: Path, how: Compression) -> None:
    """Closes what a crash left open. Raises OSError."""
    for beside in root.glob(f"*/.*{LINES}*.new"):
        beside.unlink()
    for part in sorted(root.glob(f"*/.*{LINES}{PART}")):
        stem = part.name.removesuffix(PART).removeprefix(".")
        if any((part.parent / f"{stem}{suffix}").exists() for suffix in SUFFIX.values()):
            part.unlink()  # it was given its name, and the crash came before this
        elif whole := _cut(part):
            finish(part, how)
            log.info("closed a file that was left open", file=f"{part.parent}/{stem}", bytes=whole)
        else:
            part.unlink()


def _cut(part: Path) -> int:
    """Cuts it behind its last whole line; the bytes that stay."""
    with part.open("r+b") as file:
        end = file.seek(0, os.SEEK_END)
        whole = 0
        while end and not whole:
            begin = max(0, end - BLOCK)
            file.seek(begin)
            whole = begin + found + 1 if (found := file.read(end - begin).rfind(b"\n")) >= 0 else 0
            end = begin
        file.truncate(whole)
        os.fsync(file.fileno())
    return whole


def used(output: FilesOutput) -> list[str]:
    """The topics' folders that hold files. Raises SinkError."""
    try:
        found = {path.parent.name for path in output.path.glob(f"*/*{LINES}*")}
    except OSError as error:
        raise disk_error(str(output.path), error) from None
    return [str(output.path / name) for name in sorted(found)]


def disk_error(where: str, error: OSError) -> HeadraceError:
    cause = error.strerror or type(error).__name__
    if error.errno in NO_ROOM:
        return AwayError("writing into", where, cause, "Make room; the stream goes on by itself. Nothing is lost.")
    hint = "See that the folder is there and may be written, then start again: it goes on from the last checkpoint."
    return SinkError("writing into", where, cause, hint)
