"""How fast the source is read, over all readers, and the lines that tell how far they are."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

TELL_SECONDS = 10.0


@dataclass
class Pace:
    """`most`: rows a second, None for as fast as it goes. Threads share it."""

    most: int | None
    tell: Callable[[str], None]
    rows: int = 0
    began: float = field(default_factory=time.monotonic)
    _told: float = field(default_factory=time.monotonic)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def took(self, rows: int, table: str, done: int, chunks: int) -> None:
        """Of the table's chunks so many are done, the last of so many rows. Returns when the next may be read."""
        with self._lock:
            self.rows += rows
            now = time.monotonic()
            wait = self.began + self.rows / self.most - now if self.most else 0.0
            if now - self._told > TELL_SECONDS:
                self._told, rate = now, self.rows / max(now - self.began, 0.001)
                self.tell(f"{table}: {done:,}/{chunks:,} chunks read, {self.rows:,} rows in all, {rate:,.0f} rows/s")
        if wait > 0:
            time.sleep(wait)
