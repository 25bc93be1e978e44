"""JSON lines on standard output; the log goes to standard error."""

from __future__ import annotations

import os

from streamer.delivery_errors import SinkError


class StdoutWriter:
    """The writer of `BackgroundSink`. Acknowledged is what the operating system took: a reader that is gone ends the
    stream, one that is slow holds it."""

    where = "standard output"

    def __init__(self, number: int = 1) -> None:
        self._number = number
        self._written = False

    def write(self, topic: str, data: bytes) -> None:
        left = memoryview(data)
        self._written = True
        try:
            while left:
                left = left[os.write(self._number, left) :]
        except OSError as error:
            hint = "Start it again with a reader that stays; the stream goes on from the last checkpoint."
            raise SinkError("writing to", self.where, error.strerror or "it is closed", hint) from None

    def due(self, now: float) -> bool:
        return self._written

    def sync(self) -> None:
        self._written = False

    def close(self) -> None:
        """The process's own."""
