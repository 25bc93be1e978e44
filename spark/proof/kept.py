"""What an unfinished check has read of the source, in a file of the lake: the next check need not read it again.

An answer stays good: the lake is wound back to where it was read. It is taken up for some hours alone, since that makes
the way back longer, and only while the table has its columns, the pipeline file its rules, and the streamer its server.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any

from contract.checkpoint import Checkpoint
from contract.pipeline_columns import Shown
from spark.checksum import Total
from spark.lake import Lake
from spark.proof.boundary import Read
from spark.proof.splits import Split, again

FILE = ("_quality", "unfinished.json")
HOURS = 6
SECONDS = 10.0  # between two writes


@dataclass
class Kept:
    """The reads of one check by table. `low`: the checkpoint at which its first read began. Threads may share it."""

    lake: Lake
    low: Checkpoint
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    began: float = field(default_factory=time.time)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _written: float = field(default_factory=time.monotonic)

    @property
    def path(self) -> str:
        return self.lake.at(*FILE)

    @classmethod
    def open(cls, lake: Lake, low: Checkpoint) -> Kept:
        """That of the check that did not end, where it is of use; else a new one."""
        kept = cls(lake, low)
        found = lake.read(kept.path)
        if not found or time.time() - found["began"] > HOURS * 3600:
            return kept
        before = Checkpoint.model_validate(found["low"])
        if (before.epoch, before.rules) != (low.epoch, low.rules) or before.place > low.place:
            return kept
        return cls(lake, before, found["tables"], found["began"])

    def split(self, shown: Shown, flavor: str) -> tuple[Split, frozenset[int] | None] | None:
        """The table's chunks and those of them that are asked for, where it was begun with its present columns."""
        facts = self.tables.get(_name(shown))
        if facts is None or facts["shape"] != _shape(shown):
            return None
        chosen = facts["chosen"]
        return again(shown, flavor, facts["split"]), None if chosen is None else frozenset(chosen)

    def reads(self, shown: Shown) -> list[Read]:
        return [_read(facts) for facts in self.tables[_name(shown)]["reads"]]

    def begin(self, shown: Shown, split: Split, chosen: frozenset[int] | None) -> None:
        with self._lock:
            self.tables[_name(shown)] = {
                "shape": _shape(shown), "split": split.kept(), "chosen": None if chosen is None else sorted(chosen),
                "reads": [],
            }  # fmt: skip

    def add(self, shown: Shown, read: Read) -> None:
        totals = [[group, total.rows, str(total.sum)] for group, total in read.totals.items()]
        with self._lock:
            self.tables[_name(shown)]["reads"].append([totals, read.seen, list(read.high), read.exact])
            if time.monotonic() - self._written > SECONDS:
                self._write()

    def drop(self, table: str) -> None:
        with self._lock:
            self.tables.pop(table, None)

    def _write(self) -> None:
        facts = {"low": self.low.model_dump(mode="json"), "began": self.began, "tables": self.tables}
        self.lake.write(self.path, facts)
        self._written = time.monotonic()

    def save(self) -> None:
        with self._lock:
            self._write()

    def forget(self) -> None:
        self.lake.delete(self.path)


def unfinished_since(lake: Lake) -> Checkpoint | None:
    """Where the first read of a check began that has not come to its end, and may be taken up."""
    found = lake.read(lake.at(*FILE))
    if not found or time.time() - found["began"] > HOURS * 3600:
        return None
    return Checkpoint.model_validate(found["low"])


def _name(shown: Shown) -> str:
    return f"{shown.schema.db}.{shown.schema.table}"


def _shape(shown: Shown) -> Any:
    facts = shown.schema.model_dump(mode="json", include={"columns", "key"})
    otherwise = {column.unfit for column in shown.schema.columns} - {"null"}
    return [facts["columns"], facts["key"], *sorted(otherwise)]


def _read(facts: list[Any]) -> Read:
    totals, seen, high, exact = facts
    epoch, file, pos = high
    return Read({group: Total(rows, int(number)) for group, rows, number in totals}, seen, (epoch, file, pos), exact)
