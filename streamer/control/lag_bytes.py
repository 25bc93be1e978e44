"""How many bytes of the server's binlog are not delivered yet: from its list of files, and from where the stream is."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from contract.pipeline import Source
from contract.sequence import file_number
from streamer import source
from streamer.errors import HeadraceError

EVERY_SECONDS = 10.0
Sizes = Mapping[str, int]  # bytes, by the binlog file's name


class LagBytes:
    """`ask`: for the server's files; it may wait, and raise HeadraceError. A thread of its own asks, at most every
    EVERY_SECONDS and while somebody wants to know, so that no status is kept waiting: the next one has the answer."""

    def __init__(self, ask: Callable[[Source], Sizes] = source.files) -> None:
        self._ask = ask
        self._known: tuple[str, Sizes] | None = None  # the server, and its files
        self._asking: threading.Thread | None = None
        self._due = 0.0  # monotonic seconds

    def latest(self, server: Source, file: str, pos: int) -> int | None:
        """Behind the position up to where all is delivered, as of when the server was last asked; None where that is
        not known."""
        now = time.monotonic()
        if now >= self._due and (self._asking is None or not self._asking.is_alive()):
            self._due = now + EVERY_SECONDS
            self._asking = threading.Thread(target=self._run, args=(server,), name="lag in bytes", daemon=True)
            self._asking.start()
        known = self._known
        if known is None or known[0] != server.where or not file:
            return None
        return behind(known[1], file, pos)

    def _run(self, server: Source) -> None:
        try:
            self._known = server.where, self._ask(server)
        except HeadraceError:  # what it was last is true no more; that the server is away others tell
            self._known = None


def behind(sizes: Sizes, file: str, pos: int) -> int:
    number = file_number(file)
    later = sum(size for name, size in sizes.items() if file_number(name) > number)
    return later + max(0, sizes.get(file, 0) - pos)
