"""What an unfinished check has read of the source, in a file of the lake: the next check need not read it again.

An answer stays good: the lake is wound back to where it was read. It is taken up for some hours alone, since that makes
the way back longer, and only while the table has its columns and is the one that it was, the pipeline file has its
rules, and the streamer its server. Of what was read before a statement that may have changed rows nothing is taken up,
since no change says what the statement did; nor of what was read before rows were erased (erased.py), which is not
written down any more behind that: boundaries of chunks are keys.

One check at a time keeps its reads (`keeping`): of two, each would write over what the other has in the file.
"""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from contract.checkpoint import Checkpoint
from contract.names import QUALITY
from contract.pipeline_columns import Shown
from spark.lake.erasures import Erasures
from spark.lake.lake import Lake
from spark.lake.lease import Lease
from spark.lake.slot import Lock, Slot, away, death_shows
from spark.lake.swaps import swap
from spark.proof.boundary import Read
from spark.proof.checksum import Total
from spark.proof.erased import since
from spark.proof.rewind import Position
from spark.proof.splits import Split, again

FILE = (QUALITY, "unfinished.json")
FORMAT = 3  # what an earlier version wrote is read anew
SLOT = "_check"
HOURS = 6
SECONDS = 10.0  # between two writes


@contextmanager
def keeping(lake: Lake) -> Iterator[bool]:
    """Whether this check is the one that keeps its reads meanwhile. One that died is known at once in a folder, and
    elsewhere when its file has stood still for a while."""
    # To lose it is no reason to end: a check writes the file as a whole, so that another one's is never mixed with it.
    lease = Lease(lake.root, swap(lake, lake.at(f"{SLOT}.json")), lambda why: None) if away(lake) else None
    slot: Slot = lease or Lock(lake, SLOT)
    until = time.monotonic() + death_shows(lake)
    who = {"job": "verify", "host": socket.gethostname(), "pid": os.getpid()}
    try:
        while not (taken := slot.taken(who)) and time.monotonic() < until:
            time.sleep(slot.poll)
        yield taken
    finally:
        slot.release()


@dataclass
class Kept:
    """The reads of one check by table. `low`: the checkpoint at which its first read began. `keeps`: as of `keeping`;
    else they are its own alone. `erasures`: the number of the last one when it began. Threads may share it."""

    lake: Lake
    low: Checkpoint
    tables: dict[str, dict[str, Any]] = field(default_factory=dict)
    began: float = field(default_factory=time.time)
    keeps: bool = True
    erasures: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _written: float = field(default_factory=time.monotonic)

    @property
    def path(self) -> str:
        return self.lake.at(*FILE)

    @classmethod
    def open(cls, lake: Lake, low: Checkpoint, keeps: bool = True) -> Kept:
        """That of the check that did not end, where it is of use; else a new one."""
        kept = cls(lake, low, keeps=keeps, erasures=Erasures(lake).known.number)
        found = lake.read(kept.path) if keeps else None
        if not found or found.get("format") != FORMAT or not 0 <= time.time() - found["began"] <= HOURS * 3600:
            return kept  # of a time that is to come nobody knows how long ago it is
        before = Checkpoint.model_validate(found["low"])
        if (before.epoch, before.rules) != (low.epoch, low.rules) or before.place > low.place:
            return kept
        gone = since(lake, found.get("erasures", 0))  # a kill may have left what an erasure took
        tables = {name: table for name, table in found["tables"].items() if name not in gone}
        return cls(lake, before, tables, found["began"], erasures=kept.erasures)

    def split(self, shown: Shown, flavor: str, made: str) -> Split | None:
        """The table's chunks, where it was begun with its present columns and is the same table. `made`: of
        Source.made."""
        facts = self.tables.get(_name(shown))
        if facts is None or (facts["shape"], facts["made"]) != (_shape(shown), made):
            return None
        return again(shown, flavor, facts["split"])

    def begin(self, shown: Shown, split: Split, made: str) -> None:
        facts = {"shape": _shape(shown), "made": made, "split": split.kept(), "reads": []}
        with self._lock:
            self.tables[_name(shown)] = {**facts, "percent": None, "chosen": None}

    def sample(self, shown: Shown, percent: int) -> frozenset[int] | None:
        """The chunks that a check of this percentage has chosen; None where the last one was of another."""
        facts = self.tables[_name(shown)]
        return frozenset(facts["chosen"]) if facts["percent"] == percent and facts["chosen"] is not None else None

    def choose(self, shown: Shown, percent: int, chosen: frozenset[int] | None) -> None:
        known = None if chosen is None else sorted(chosen)
        with self._lock:
            self.tables[_name(shown)] |= {"percent": percent, "chosen": known}

    def reads(self, shown: Shown) -> list[Read]:
        return [_read(facts) for facts in self.tables[_name(shown)]["reads"]]

    def add(self, shown: Shown, read: Read) -> None:
        with self._lock:
            self.tables[_name(shown)]["reads"].append(_facts(read))
            if time.monotonic() - self._written > SECONDS:
                self._write()

    def leave(self, shown: Shown, numbers: frozenset[int]) -> None:
        """Of these chunks what was read is not taken up."""
        left = [_without(read, numbers) for read in self.reads(shown)] if numbers else self.reads(shown)
        with self._lock:
            self.tables[_name(shown)]["reads"] = [_facts(read) for read in left if read.totals]

    def drop(self, table: str) -> None:
        with self._lock:
            self.tables.pop(table, None)

    def drop_before(self, table: str, place: Position) -> None:
        """Of a table that was altered at the place what was read before is not taken up."""
        self.drop_if(table, lambda read: read.high <= place)

    def drop_if(self, table: str, lost: Callable[[Read], bool]) -> None:
        """Of a table of which one of the reads holds no more nothing is taken up."""
        if table in self.tables and any(lost(_read(facts)) for facts in self.tables[table]["reads"]):
            self.drop(table)

    def _write(self) -> None:
        if not self.keeps:
            return
        facts = {"format": FORMAT, "low": self.low.model_dump(mode="json"), "began": self.began, "at": time.time()}
        facts["erasures"] = self.erasures
        known: set[str] | None = None
        while known != (gone := since(self.lake, self.erasures)):  # an erasure may remove the file just before
            tables = {name: table for name, table in self.tables.items() if name not in gone}
            self.lake.write(self.path, {**facts, "tables": tables})
            known = gone
        self._written = time.monotonic()

    def save(self) -> None:
        with self._lock:
            self._write()

    def forget(self, tables: Iterable[str]) -> None:
        """Of tables that were compared. What was read of others is still to be, by a check of these."""
        with self._lock:
            for name in tables:
                self.tables.pop(name, None)
            if self.tables:
                self._write()
            elif self.keeps:
                self.lake.delete(self.path)


def leave(lake: Lake) -> None:
    """What a check has read that did not end is not taken up."""
    lake.delete(lake.at(*FILE))


def unfinished_since(lake: Lake) -> Checkpoint | None:
    """Where the first read of a check began that has not come to its end, and reads on, or may be taken up."""
    found = lake.read(lake.at(*FILE))
    if not found or time.time() - found.get("at", found["began"]) > HOURS * 3600:
        return None
    return Checkpoint.model_validate(found["low"])


def _name(shown: Shown) -> str:
    return f"{shown.schema.db}.{shown.schema.table}"


def _shape(shown: Shown) -> Any:
    facts = shown.schema.model_dump(mode="json", include={"columns", "key"})
    otherwise = {column.unfit for column in shown.schema.columns} - {"null"}
    return [facts["columns"], facts["key"], *sorted(otherwise)]


def _facts(read: Read) -> list[Any]:
    totals = [[group, total.rows, str(total.sum)] for group, total in read.totals.items()]
    return [totals, read.seen, list(read.high), read.exact, read.at]


def _read(facts: list[Any]) -> Read:
    totals, seen, high, exact, at = facts
    epoch, file, pos = high
    known = {group: Total(rows, int(number)) for group, rows, number in totals}
    return Read(known, seen, (epoch, file, pos), exact, at)


def _without(read: Read, numbers: frozenset[int]) -> Read:
    return replace(read, totals={group: total for group, total in read.totals.items() if group not in numbers})
