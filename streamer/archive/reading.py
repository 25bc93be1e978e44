"""From a dump's bytes to the archive's files, one after the other.

In: a dump that begins at the file's `start`. Heartbeats, and what the server makes up for the connection, are in no
file and are left out. Raises what the dump and the files raise; what came before is on the disk then.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import structlog

from streamer.archive.dump import FileDump
from streamer.archive.extent import FIRST
from streamer.archive.files import Kept, Part, differs
from streamer.archive.status import Status
from streamer.archive.store import Folder, following
from streamer.protocol import events as ev
from streamer.protocol.packets import Packets

log = structlog.get_logger("streamer")
HEARTBEATS = (ev.HEARTBEAT, ev.HEARTBEAT_V2)
SYNC_SECONDS = 1.0


class Reading:
    """`file`: the one that is read now. `check` is called every second."""

    def __init__(self, file: Kept, folder: Folder, status: Status, stop: threading.Event) -> None:
        self.file = file
        self._folder, self._status, self._stop = folder, status, stop
        self._packets = Packets()
        self._begun = False  # the server has said with which file it begins
        self._synced = time.monotonic()
        self._level = False  # the server has nothing more at the moment
        self._second = 0.0  # time stamp of the last event

    def run(self, dump: FileDump, check: Callable[[], None]) -> bool:
        """Until the stop, or until the server says that nothing more comes; returns whether it said so."""
        try:
            for chunk in dump.chunks():
                self._level = self._level or not chunk
                for event in self._packets.feed(chunk):
                    self._event(*event)
                self.file.flush()
                self._turn(check)
                if self._packets.ended or self._stop.is_set():
                    break
        finally:
            dump.close()
            self.file.sync()
            self._tell(time.monotonic())
        return self._packets.ended

    def _turn(self, check: Callable[[], None]) -> None:
        now = time.monotonic()
        if now - self._synced >= SYNC_SECONDS:
            self._synced = now
            self.file.sync()
            check()
            self._tell(now)

    def _tell(self, now: float) -> None:
        status = self._status
        status.file, status.position = self.file.name, self.file.at
        level = self._level or self._packets.ended
        status.behind_seconds = 0.0 if level else max(0.0, round(time.time() - self._second, 1))
        if status.state in ("starting", "waiting"):
            status.state = "archiving"
        status.tick(now)

    def _event(self, buffer: bytes, o: int, end: int, header: tuple[int, ...]) -> None:
        kind = header[ev.TYPE]
        if kind in HEARTBEATS:
            self._level = True
            return
        if header[ev.FLAGS] & ev.ARTIFICIAL:
            if kind == ev.ROTATE:
                self._goes_to(buffer[o + 8 : end].decode())
            return
        start = o - ev.HEADER
        event = buffer[start : start + header[ev.SIZE]]
        if kind == ev.FORMAT_DESCRIPTION and not header[ev.POSITION] and self.file.at > FIRST:
            self.file.describe(event)
            return
        self.file.take(event)
        self._level = False
        self._status.bytes += len(event)
        self._second = header[ev.TIMESTAMP]

    def _goes_to(self, name: str) -> None:
        if name == self.file.name:
            self._begun = True
            return
        expected = following(self.file.name) if self._begun else self.file.name
        if name != expected:
            raise differs(expected, f"the server gives {name} in its place", self._folder.path)
        self._close()
        self.file = Part(name, self._folder.path)

    def _close(self) -> None:
        done = self.file
        done.close()
        if isinstance(done, Part):
            self._status.files_closed += 1
            log.info("file complete", file=done.name, bytes=done.at)
