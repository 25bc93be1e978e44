"""How fast rows are read of a server.

Each read counts from its own begin: rows that were not read in a rest, such as for a server that was busy, are not made
up for behind it, when the server needs the limit most.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Rate:
    """`most`: rows a second, None for as fast as it goes. `free`: from when on the next may be read, by the monotonic
    clock. Threads that share it take a lock."""

    most: int | None
    free: float = 0.0

    def took(self, rows: int, began: float) -> None:
        """Notes rows whose read began at that time."""
        if self.most:
            self.free = max(self.free, began) + rows / self.most
