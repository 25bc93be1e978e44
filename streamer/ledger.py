"""The waiting queue between reading and the checkpoint.

In: every transaction's row batches and its end, in binlog order; then acknowledgements, in any order.
Out: `release()` gives the last transaction end before which everything is acknowledged. It never skips a
change that is not, and never moves back.

One entry a rows batch, not a row: the batch's rows share one counter, which the sink's delivery callback
(`Entry.acknowledge`, a bound method) counts down. A commit is written on the last entry of its transaction;
a transaction that left no rows (filtered, DDL, empty) gets an entry of its own, so that the checkpoint moves
on through it.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple, Protocol

from contract.gtid import GtidSet

EMPTY_ENTRY_BYTES = 200  # what a transaction without rows takes, so that a flood of them is bounded too


class TransactionEnd(Protocol):
    """What the ledger needs of a commit: read-only, made by the decoder."""

    @property
    def gtid(self) -> str: ...


class Failure(NamedTuple):
    """A record that the sink gave up. `topic`: where it should have gone. `error`: the sink's own."""

    topic: str
    error: Any


class Entry:
    """Rows of one batch on their way. `pending` counts the records not yet acknowledged. `cut`: one of them could
    not be sent, so that it is never released."""

    __slots__ = ("commit", "cut", "entered", "events", "ledger", "pending", "size")

    def __init__(self, ledger: Ledger, events: int, size: int, entered: float) -> None:
        self.ledger = ledger
        self.pending = self.events = events
        self.size = size
        self.entered = entered
        self.commit: TransactionEnd | None = None
        self.cut = False

    def acknowledge(self, error: Any, message: Any) -> None:
        """The sink's delivery callback, once a record. An error is kept and the record stays pending."""
        if error is None:
            self.pending -= 1
        elif self.ledger.failure is None:
            self.ledger.failure = Failure(message.topic() or "?", error)


class Ledger:
    """Bounded by `max_events` rows and `max_bytes` of values; one batch may overshoot it.

    `released`: the GTID set of everything released. `events`: rows of released whole transactions, on top of
    the number it started with. `passed`: entries released so far. Times are seconds of a monotonic clock, given by the
    caller.
    """

    def __init__(self, max_events: int, max_bytes: int, released: GtidSet, events: int = 0) -> None:
        self.max_events = max_events
        self.max_bytes = max_bytes
        self.released = released
        self.events = events
        self.passed = 0
        self.failure: Failure | None = None
        self.depth = 0
        self.size = 0
        self._entries: deque[Entry] = deque()
        self._open: Entry | None = None  # last entry of the transaction that is being read
        self._open_events = 0  # released rows of a transaction whose end is not released yet

    @property
    def full(self) -> bool:
        return self.depth >= self.max_events or self.size >= self.max_bytes

    def enter(self, events: int, size: int, now: float) -> Entry:
        """Takes in `events` rows (1 or more) of `size` bytes, before the first of them is sent."""
        entry = Entry(self, events, size, now)
        self._entries.append(entry)
        self._open = entry
        self.depth += events
        self.size += size
        return entry

    def note(self, records: int, size: int, now: float) -> Entry:
        """Takes in records that are no rows, to be acknowledged like rows."""
        entry = Entry(self, 0, size, now)
        entry.pending = records
        self._entries.append(entry)
        self._open = entry
        self.depth += 1
        self.size += size
        return entry

    def commit(self, end: TransactionEnd, now: float) -> None:
        """Takes in the end of the transaction whose batches were entered since the last one."""
        entry = self._open
        if entry is None:
            entry = Entry(self, 0, EMPTY_ENTRY_BYTES, now)
            self._entries.append(entry)
            self.depth += 1
            self.size += EMPTY_ENTRY_BYTES
        entry.commit = end
        self._open = None

    def release(self) -> TransactionEnd | None:
        """Drops the acknowledged head. Returns the last transaction end in it, or None."""
        entries = self._entries
        before = len(entries)
        depth = size = 0
        released = []
        while entries and not entries[0].pending:
            entry = entries.popleft()
            depth += entry.events or 1
            size += entry.size
            self._open_events += entry.events
            if entry.commit is not None:
                released.append(entry.commit)
                self.events += self._open_events
                self._open_events = 0
            elif entry is self._open:  # its transaction goes on; the commit will get an entry of its own
                self._open = None
        self.depth -= depth
        self.size -= size
        self.passed += before - len(entries)
        self.released.add_all(end.gtid for end in released)
        return released[-1] if released else None

    def entered(self) -> GtidSet:
        """The whole transactions taken in so far: from here a lost connection goes on."""
        gtids = self.released.copy()
        gtids.add_all(entry.commit.gtid for entry in self._entries if entry.commit is not None)
        return gtids

    def entered_events(self) -> int:
        """Rows of released and entered transactions, whole or not, on top of the number it started with."""
        return self.events + self._open_events + sum(entry.events for entry in self._entries)

    @property
    def open_events(self) -> int:
        """Released rows of the transaction whose end is not released yet."""
        return self._open_events

    @property
    def exhausted(self) -> bool:
        """Whether nothing is left that could still be released."""
        return not self._entries or self._entries[0].cut

    def head(self) -> Entry | None:
        """The oldest entry that is not released."""
        return self._entries[0] if self._entries else None
