"""Up to where each table's rows were dropped by TRUNCATE: one file of the lake.

A truncation comes once in every partition of the topic, and the partitions are read at different speeds. A change
that is older and comes later must not bring its row back, so the greatest truncation of each table is kept.
"""

from __future__ import annotations

import threading
from typing import Any

from spark.failpoints import reached
from spark.lake.lake import Lake
from spark.lake.stopped import Name


class Truncated:
    """Each table's, as a `_seq`. May be used by several threads."""

    def __init__(self, lake: Lake) -> None:
        self.lake, self.path, self.lock = lake, lake.at("_truncated.json"), threading.Lock()
        known: Any = lake.read(self.path) or []
        self.tables: dict[Name, list[int]] = {(db, table): at for db, table, at in known}

    def of(self, name: Name) -> list[int]:
        """Empty, and so before everything, for a table that never was."""
        return self.tables.get(name, [])

    def note(self, name: Name, at: list[int]) -> None:
        with self.lock:
            if at > self.of(name):
                self.tables[name] = at
                self.lake.write(self.path, [[*name, at] for name, at in sorted(self.tables.items())])
                reached("truncation noted")
