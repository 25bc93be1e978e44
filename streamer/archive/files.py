"""The file that is being archived: what is there already is compared with what the server sends, the rest is appended.

In: the events of one of the server's files, from `start` on, as bytes. A `Part` is `<name>.part` until the server goes
on to its next file, then `<name>`; it holds whole events only, whatever ends the process. A `Kept` one is complete:
no byte may come behind it. Both raise ArchiveDiffersError and write over nothing; OSError of the disk.
"""

from __future__ import annotations

import os
from pathlib import Path

from contract.durable import sync_folder
from streamer.archive.errors import ArchiveDiffersError
from streamer.archive.extent import FIRST, LOW, MAGIC, POSITION_AT, extent, head_of, identity
from streamer.disk import make_durable
from streamer.errors import CorruptEventError
from streamer.protocol.packets import HINT

PART = ".part"
FARTHEST = LOW  # a dump can be asked for from a position of 32 bits
HEAD_BYTES = 4096  # in which a format description has room


def differs(what: str, cause: str, folder: Path) -> ArchiveDiffersError:
    hint = (
        f"The server's binlog was reset, or is another one. Nothing was overwritten: move the folder {folder} away "
        "(and what was uploaded of it), take a new backup of the server, and start again"
    )
    return ArchiveDiffersError("archive", what, cause, hint)


class Kept:
    """`start`: from where the server is asked, which is the end; `at`: where the next event belongs."""

    def __init__(self, name: str, folder: Path, size: int, head: bytes) -> None:
        self.name = name
        self.start = self.at = size
        self._folder = folder
        self._head = head

    def describe(self, description: bytes) -> None:
        """The server's format description, sent ahead of a file's middle."""
        if identity(description) != identity(head_of(self._head)):
            raise differs(self.name, "it begins otherwise on the server", self._folder)

    def take(self, event: bytes) -> None:
        raise differs(self.name, f"it ends at {self.at} in the archive, and goes on on the server", self._folder)

    def flush(self) -> None: ...

    def sync(self) -> None: ...

    def close(self) -> None: ...

    def let_go(self) -> None: ...


class Part(Kept):
    """Made where it is not there; what is no whole event at its end is cut off."""

    def __init__(self, name: str, folder: Path) -> None:
        self._path = folder / (name + PART)
        self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        try:
            found = extent(self._path)
            super().__init__(name, folder, found.length, os.pread(self._file, HEAD_BYTES, 0))
            os.ftruncate(self._file, found.length)
            if not found.length:
                _write(self._file, MAGIC, 0)
        except OSError:
            os.close(self._file)
            raise
        self.length = max(found.length, FIRST)  # bytes in the file
        self.start = self.at = found.last if FIRST < found.last < FARTHEST else FIRST
        self._waiting: list[bytes] = []
        self._durable, self._synced = self.length, False

    def take(self, event: bytes) -> None:
        end = self.at + len(event)
        told = int.from_bytes(event[POSITION_AT : POSITION_AT + 4], "little")
        if told and told != end & LOW:
            cause = f"an event that ends at {told} came for the bytes {self.at} to {end}"
            raise CorruptEventError("archive", self.name, cause, HINT)
        if self.at < self.length:
            if os.pread(self._file, len(event), self.at) != event:
                raise differs(self.name, f"the archive has other bytes than the server at {self.at}", self._folder)
        else:
            self._waiting.append(event)
        self.at = end

    def flush(self) -> None:
        """What came is in the file; the process may be killed."""
        if self._waiting:
            _write(self._file, b"".join(self._waiting), self.length)
            self._waiting.clear()
            self.length = self.at
            self._synced = False

    def sync(self) -> None:
        """What came is on the disk; the power may go."""
        self.flush()
        if not self._synced:
            make_durable(self._file, self._durable)
            self._durable, self._synced = self.length, True

    def close(self) -> None:
        """The server has gone on: the file is complete, and gets its name."""
        if self.at < self.length:
            cause = f"the archive has {self.length} bytes of it, the server {self.at}"
            raise differs(self.name, cause, self._folder)
        self.sync()
        target = self._folder / self.name
        if target.exists():
            raise differs(self.name, "the archive has it already", self._folder)
        self._path.rename(target)
        self.let_go()
        sync_folder(self._folder)

    def let_go(self) -> None:
        """Closes the file as it is; what was not flushed comes again from the server."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


def _write(file: int, data: bytes, at: int) -> None:
    view = memoryview(data)
    while view:
        done = os.pwrite(file, view, at)
        view, at = view[done:], at + done
