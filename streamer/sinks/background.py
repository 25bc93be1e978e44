"""A sink whose writing is done by a thread of its own, so that a slow or absent other side never holds the stream up
by itself: the ledger does that, by its bounds.

In: a `Writer`, one of the places behind it. The thread gives it what was sent, in order, and asks it now and then to
make that durable; then the records are acknowledged. What the writer raises as a retryable HeadraceError is tried again
from where it stood, for ever; every other error, of whatever class, is the fate of all that is not durable.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, Protocol

import structlog

from streamer.errors import HeadraceError
from streamer.sinks import own
from streamer.sinks.lines import lines
from streamer.sinks.port import Callback, Message

log = structlog.get_logger("streamer")
RETRY_SECONDS = 1.0
TURN_SECONDS = 0.05  # how often the writer is asked whether something is due
BYTES = 4_000_000  # written between two looks at the clock
CLOSE_SECONDS = 5.0


class Writer(Protocol):
    """Called from one thread. `where`: for errors and logs."""

    @property
    def where(self) -> str: ...

    def write(self, topic: str, data: bytes) -> None:
        """Takes whole lines, all or nothing of them. Raises HeadraceError."""

    def due(self, now: float) -> bool:
        """Whether `sync` has something to do now; monotonic seconds."""

    def sync(self) -> None:
        """Returns when all that was written is durable. Raises HeadraceError; asked again after a retryable one."""

    def close(self) -> None:
        """Nothing more comes."""


class Batch(NamedTuple):
    topic: str
    keys: Sequence[bytes | None]
    values: Sequence[bytes]
    callback: Callback


class BackgroundSink:
    """`title` and `last_error` as the port says."""

    def __init__(self, title: str, writer: Writer) -> None:
        self.title = title
        self.last_error = ""
        self._writer = writer
        self._moved = threading.Condition()
        self._waiting: deque[Batch] = deque()
        self._done: deque[tuple[Batch, HeadraceError | None]] = deque()
        self._hurry = False
        self._closing = False
        self._failure: HeadraceError | None = None
        self._outstanding = 0  # records whose fate was not told
        self._written: list[Batch] = []  # the thread's own, not durable yet
        self._thread = threading.Thread(target=self._run, name="sink", daemon=True)
        self._thread.start()

    def send(self, topic: str, keys: Sequence[bytes | None], values: Sequence[bytes], callback: Callback) -> None:
        with self._moved:
            self._outstanding += len(values)
            self._waiting.append(Batch(topic, keys, values, callback))
            if len(self._waiting) == 1:
                self._moved.notify_all()

    def poll(self, seconds: float) -> None:
        if not self._done and seconds:
            with self._moved:
                self._moved.wait_for(lambda: self._done, seconds)
        while self._done:
            batch, error = self._done.popleft()
            message = Message(batch.topic)
            self._outstanding -= len(batch.values)
            for _ in batch.values:
                batch.callback(error, message)

    def flush(self, seconds: float) -> int:
        until = time.monotonic() + seconds
        with self._moved:
            self._hurry = bool(self._outstanding)
            self._moved.notify_all()
        self.poll(0)
        while self._outstanding and (left := until - time.monotonic()) > 0:
            self.poll(left)
        return self._outstanding

    def probe(self, seconds: float) -> bool:
        return not self.last_error

    def close(self) -> None:
        with self._moved:
            self._closing = True
            self._waiting.clear()
            self._moved.notify_all()
        self._thread.join(CLOSE_SECONDS)  # one that hangs in a call ends with the process

    def _run(self) -> None:
        while not self._closing:
            with self._moved:
                self._moved.wait_for(lambda: self._closing or self._waiting or self._hurry, TURN_SECONDS)
            try:
                self._turn()
            except HeadraceError as error:
                self._fail(error)
            except (Exception, SystemExit) as error:  # of a writer of the user's
                self._fail(own.failed(self.title, error))
        try:
            self._writer.close()
        except HeadraceError as error:
            log.warning("a sink was not closed as it should be", sink=self.title, error=str(error))
        except (Exception, SystemExit) as error:
            log.warning(
                "a sink was not closed as it should be", sink=self.title, error=str(own.failed(self.title, error))
            )

    def _turn(self) -> None:
        self._write()
        if self._failure is not None:
            self._tell(self._failure)
        elif not self._closing and (self._hurry or self._writer.due(time.monotonic())):
            self._hurry = bool(self._waiting)
            self._trying(self._writer.sync)
            self._tell(None)

    def _write(self) -> None:
        left = BYTES
        while self._waiting and left > 0 and not self._closing:
            try:
                batch = self._waiting.popleft()
            except IndexError:  # it was closed this moment
                return
            self._written.append(batch)
            if self._failure is None:
                data = lines(batch.topic, batch.keys, batch.values)
                self._trying(partial(self._writer.write, batch.topic, data))
                left -= len(data)

    def _trying(self, step: Callable[[], None]) -> None:
        """Until it has worked, or the sink is closed. Raises HeadraceError that no time mends."""
        while not self._closing:
            try:
                step()
            except HeadraceError as error:
                if not error.retryable:
                    raise
                self.last_error = str(error)
                with self._moved:
                    self._moved.wait_for(lambda: self._closing, RETRY_SECONDS)
                continue
            self.last_error = ""
            return

    def _fail(self, error: HeadraceError) -> None:
        """Nothing passes what is lost: whatever comes behind it has the same fate."""
        self._failure = error
        self._hurry = False
        self.last_error = str(error)
        self._tell(error)

    def _tell(self, error: HeadraceError | None) -> None:
        if self._closing or not self._written:
            return
        told, self._written = self._written, []
        with self._moved:
            self._done.extend((batch, error) for batch in told)
            self._moved.notify_all()
