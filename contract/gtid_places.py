"""What stands for GTIDs where a server has none: the places of transactions in its binlog.

A transaction is named by the place where it begins, `file=binlog.000012,pos=4567`, as Debezium names it. A set is
all that begins before such a place. Both hold on one server alone, for as long as its binlog is not begun anew.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable

from contract.gtid import GtidSet
from contract.sequence import file_number

MARK = "file="
NAME = re.compile(r"file=(?P<file>.+\.\d+),pos=(?P<pos>\d+)")
WIDTH = 64  # bits of a position


def name(file: str, pos: int) -> str:
    """Of the transaction that begins there; of the set, of all that begin before."""
    return f"{MARK}{file},pos={pos}"


def gtid_of(named: str) -> str | None:
    """The GTID by which a transaction is named; None where it has none, and its place names it."""
    return None if named.startswith(MARK) else named


class UpTo(GtidSet):
    """All transactions that begin before a place. Keys are the binlog files' names without their numbers, each with one
    interval of places: file number and position as one number."""

    __slots__ = ()

    @classmethod
    def place(cls, file: str, pos: int) -> UpTo:
        gtids = cls()
        gtids._reach(file, pos - 1)
        return gtids

    @classmethod
    def parse(cls, text: str) -> UpTo:
        """`file=binlog.000012,pos=4567`, or nothing. Raises ValueError."""
        return cls.place(*_read(text.strip())) if text.strip() else cls()

    def add(self, gtid: str) -> None:
        """Everything up to this transaction."""
        self._reach(*_read(gtid))

    def add_all(self, gtids: Iterable[str]) -> None:
        """They follow one another."""
        for last in deque(gtids, maxlen=1):
            self.add(last)

    def contains(self, gtid: str) -> bool:
        base, number = _number(*_read(gtid))
        return self._covers(base, (number, number))

    def union(self, other: GtidSet) -> UpTo:
        result = self.copy()
        for base, _, last in other:
            result._to(base, last)
        return result

    def subtract(self, other: GtidSet) -> UpTo:
        result = UpTo()
        result.intervals = super().subtract(other).intervals
        return result

    def copy(self) -> UpTo:
        result = UpTo()
        result.intervals = {base: list(spans) for base, spans in self.intervals.items()}
        return result

    @property
    def end(self) -> tuple[str, int]:
        """File and position. Raises ValueError for the empty set."""
        for base, _, last in self:
            return f"{base}.{last >> WIDTH:06d}", (last & (1 << WIDTH) - 1) + 1
        raise ValueError("the empty set has no place")

    def _reach(self, file: str, pos: int) -> None:
        self._to(*_number(file, pos))

    def _to(self, base: str, number: int) -> None:
        known = self.intervals.get(base)
        if known is None or known[0][1] < number:
            self.intervals[base] = [(1, number)]

    def __str__(self) -> str:
        return name(*self.end) if self else ""

    def __repr__(self) -> str:
        return f"UpTo({str(self)!r})"


def _read(text: str) -> tuple[str, int]:
    found = NAME.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} names no place in a binlog: file=binlog.000012,pos=4567 is expected")
    return found["file"], int(found["pos"])


def _number(file: str, pos: int) -> tuple[str, int]:
    return file.rpartition(".")[0], file_number(file) << WIDTH | pos
