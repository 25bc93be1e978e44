"""Which of a table's transactions a check needs one by one: those about the read of each chunk.

What a read shows for certain, and what it cannot show, are two sums: no boundary is looked for there (boundary.py). So
what comes to the driver grows with the chunks, and not with the hours since the check began. To know where a read's
boundary can be at the earliest, some transactions are enough: one that the read shows, with all that is before it in
the binlog. The few between that one and the last that it shows come one by one, and are passed by as ever.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import replace

from contract import gtids
from spark.proof.boundary import Read
from spark.proof.rewind import Past, Position, Step, Window
from spark.proof.splits import Split


def steps_of(past: Past, split: Split, reads: Sequence[Read]) -> list[Step]:
    """The changes of the reads' chunks, as `match` needs them."""
    high = max(read.high for read in reads)
    return past.steps(high, split.number, within=windows(reads, _some(past, reads)))


def from_shown(past: Past, read: Read) -> Past:
    """The same past, without most of what the read shows for certain."""
    at = shown(read, _some(past, [read]))
    return past if at is None else replace(past, low=max(past.low, at))


def windows(reads: Sequence[Read], some: Sequence[tuple[Position, str]]) -> dict[int, Window]:
    """Of each chunk, which is of one read. `some`: as of Past.some."""
    found = [(read, Window(shown(read, some), read.high)) for read in reads]
    return {group: window for read, window in found for group in read.totals}


def shown(read: Read, some: Sequence[tuple[Position, str]]) -> Position | None:
    """A place such that the read shows all that begins there or before it, as far as that is before its `high`; None
    where nobody can tell one."""
    if read.exact:
        return read.high
    if not read.seen:
        return None
    seen, last = gtids.parse(read.seen), bisect_left(some, read.high, key=lambda one: one[0])
    return next((some[n][0] for n in reversed(range(last)) if seen.contains(some[n][1])), None)


def _some(past: Past, reads: Sequence[Read]) -> list[tuple[Position, str]]:
    asked = [read.high for read in reads if read.seen and not read.exact]
    return past.some(max(asked)) if asked else []
