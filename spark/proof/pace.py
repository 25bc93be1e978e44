"""How fast the source is read, over all readers, and the lines that tell how far they are."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from spark.source.rate import Rate

TELL_SECONDS = 10.0


@dataclass
class Pace:
    """`most`: rows a second, None for as fast as it goes. Threads share it."""

    most: int | None
    tell: Callable[[str], None]
    rows: int = 0
    began: float = field(default_factory=time.monotonic)
    _rate: Rate = field(init=False)
    _told: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._rate = Rate(self.most)

    def took(self, rows: int, began: float, table: str, done: int, chunks: int) -> None:
        """Of the table's chunks so many are done, the last of so many rows, whose read began at that time of the
        monotonic clock. Returns when the next may be read."""
        with self._lock:
            self.rows += rows
            rate = self.rows / max(time.monotonic() - self.began, 0.001)
            told = f"{table}: {done:,}/{chunks:,} chunks read, {self.rows:,} rows in all, {rate:,.0f} rows/s"
            wait = self._noted(rows, began, told)
        if wait > 0:
            time.sleep(wait)

    def walked(self, rows: int, began: float, table: str, so_far: int) -> None:
        """The same of rows whose keys alone the server looked at, to find where a chunk ends."""
        with self._lock:
            wait = self._noted(rows, began, f"{table}: its key is walked for chunks, {so_far:,} rows so far")
        if wait > 0:
            time.sleep(wait)

    def _noted(self, rows: int, began: float, told: str) -> float:
        """How many seconds nothing may be read."""
        self._rate.took(rows, began)
        now = time.monotonic()
        if now - self._told > TELL_SECONDS:
            self._told = now
            self.tell(told)
        return self._rate.free - now
