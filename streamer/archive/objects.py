"""From the spool into an object store: complete files once, the open one again and again as `<name>.part`.

A thread of its own, so that the binlog is read on while the store is slow or away. A file leaves the spool when the
store lists it with its size. What the store has already is written over only where it is a beginning of what comes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import fsspec
import structlog

from contract.durable import sync_folder
from contract.names import escape
from contract.pipeline_archive import Archive
from streamer.archive.errors import ArchiveAwayError, ArchiveDiffersError, ArchiveStoreError
from streamer.archive.extent import written
from streamer.archive.files import HEAD_BYTES, PART
from streamer.archive.store import Folder, explained, in_order
from streamer.errors import HeadraceError
from streamer.object_stores import final, words

log = structlog.get_logger("streamer")
BLOCK = 1 << 24  # bytes read and sent at once; S3 takes at least 5 MB, and 10,000 of them
TURN_SECONDS = 1.0
RETRY_SECONDS = 5.0


class Objects:
    """The files of one server in the store. Raises ArchiveAwayError, ArchiveStoreError, ArchiveDiffersError."""

    def __init__(self, archive: Archive, server_uuid: str) -> None:
        self.url = f"{archive.target.rstrip('/')}/{escape(server_uuid)}"
        self._sent: dict[str, int] = {}  # bytes of the open files that this process sent
        with self._said():
            self._fs, self._root = fsspec.core.url_to_fs(self.url, **archive.options)

    def sizes(self) -> dict[str, int]:
        """The files, the oldest first, with PART behind an open one's name."""
        with self._said():
            self._fs.invalidate_cache()
            try:
                found = self._fs.ls(self._root, detail=True)
            except FileNotFoundError:  # a folder is there when something is in it
                return {}
            return {one["name"].rpartition("/")[2]: int(one["size"] or 0) for one in found}

    def complete(self) -> dict[str, int]:
        return in_order(self.sizes())

    def head(self, name: str) -> bytes:
        with self._said():
            found: bytes = self._fs.cat_file(f"{self._root}/{name}", start=0, end=HEAD_BYTES)
            return found

    def fetch(self, name: str, path: Path) -> None:
        with self._said():
            self._fs.get_file(f"{self._root}/{name}", str(path))

    def put(self, path: Path, length: int) -> None:
        """The file's first `length` bytes under its name; nothing where the store has them."""
        name = path.name
        there = self.sizes().get(name, 0)
        if there and self._sent.get(name) != there:
            self._compare(path, name, there, length)
        if there < length:
            with self._said(), path.open("rb") as local, self._fs.open(f"{self._root}/{name}", "wb", BLOCK) as remote:
                left = length
                while left and (data := local.read(min(BLOCK, left))):
                    remote.write(data)
                    left -= len(data)
        listed = self.sizes().get(name)
        if listed != max(there, length):
            cause = f"it was sent with {length} bytes, and is listed with {listed or 'none'}"
            raise ArchiveAwayError("upload", f"{self.url}/{name}", cause, "It is sent again")
        self._sent[name] = listed

    def remove(self, name: str) -> None:
        self._sent.pop(name, None)
        with self._said(), suppress(FileNotFoundError):
            self._fs.rm_file(f"{self._root}/{name}")

    def _compare(self, path: Path, name: str, there: int, length: int) -> None:
        """Raises ArchiveDiffersError unless what is there is a beginning of what comes. Of an open file the store may
        have more: the spool was lost since."""
        same, left = there <= length or name.endswith(PART), min(there, length)
        with self._said(), path.open("rb") as local, self._fs.open(f"{self._root}/{name}", "rb") as remote:
            while same and left and (data := remote.read(min(BLOCK, left))):
                same = local.read(len(data)) == data
                left -= len(data)
        if not same:
            hint = "Nothing was overwritten. Move what the store has there away, and start again"
            raise ArchiveDiffersError("upload", f"{self.url}/{name}", "the store has other bytes under this name", hint)

    @contextmanager
    def _said(self) -> Iterator[None]:
        """What no retry mends ends the archive, all else may pass."""
        try:
            yield
        except HeadraceError:
            raise
        except Exception as error:  # of whichever library
            if final(error):
                hint = "See that archive.target and archive.options name a store that is there, and rights to write it"
                raise ArchiveStoreError("archive into", self.url, words(error), hint) from None
            hint = "It is tried again; what is read waits in the spool"
            raise ArchiveAwayError("archive into", self.url, words(error), hint) from None


class Uploads:
    """`error`: why it waits or has ended; `waiting`: complete files that the store does not have yet."""

    def __init__(self, objects: Objects, folder: Folder, every: float) -> None:
        self.error: HeadraceError | None = None
        self.waiting = 0
        self._objects, self._folder, self._every = objects, folder, every
        self._last = time.monotonic()
        self._seen = ("", 0)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, name="archive-uploads", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def turn(self, also_open: bool) -> None:
        """Uploads what is complete; the open file where it grew. Raises as Objects, and of the disk."""
        for name in self._complete():
            path = self._folder.path / name
            self._objects.put(path, path.stat().st_size)
            path.unlink()
            sync_folder(self._folder.path)
            self._objects.remove(name + PART)
            self.waiting -= 1
            log.info("uploaded", file=name, to=self._objects.url)
        if also_open:
            self._open()

    def _complete(self) -> list[str]:
        found = list(self._folder.sizes())
        self.waiting = len(found)
        return found

    def _open(self) -> None:
        self._last = time.monotonic()
        for path in self._folder.path.glob("*" + PART):
            with suppress(FileNotFoundError):  # it was completed this moment
                found = path.name, written(path)
                if found != self._seen:
                    self._objects.put(path, found[1])
                    self._seen = found

    def stop(self, seconds: float) -> None:
        """Uploads what is there, the open file too; what is left after the time goes up at the next start."""
        self._end.set()
        self._thread.join(seconds)

    def finish(self) -> None:
        """Uploads all that is there. Raises as `turn`."""
        self._end.set()
        self._thread.join()
        with explained(self._folder.path):
            self.turn(also_open=True)

    def _run(self) -> None:
        while not self._end.is_set():
            self._try(time.monotonic() - self._last >= self._every)
            self._end.wait(RETRY_SECONDS if self.error else TURN_SECONDS)
        self._try(also_open=True)

    def _try(self, also_open: bool) -> None:
        try:
            with explained(self._folder.path):
                self.turn(also_open)
            self.error = None
        except HeadraceError as error:
            if self.error is None:
                log.warning("upload waits" if error.retryable else "upload failed", error=str(error))
            self.error = error
