"""When a stopped table is tried again.

A try reads all changes that wait, which of a busy table that was stopped for a weekend takes minutes, and every other
table grows old meanwhile. So one whose last try was slow is left out for a while, unless something has changed since
by which the next one may succeed. What changed elsewhere, a row in the source or a file that was put back from a copy,
has its try behind that while.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from contract.schema import TableSchema
from spark.lake.lake import Lake
from spark.lake.stopped import Name, Stopped, StoppedTables

QUICK = 10.0  # seconds: a try that took no longer is made in each run
TIMES, MOST = 10, 900.0  # how often as long as the try the while behind it is, and the seconds that it is at most


def next_try(stop: Stopped, by: str, now: float) -> float | None:
    """Unix s; None where it is tried now, as also by a clock that was set back. `by`: the grounds of now."""
    until = stop.tried + min(TIMES * stop.took, MOST)
    left_out = stop.took > QUICK and stop.by == by and stop.tried <= now < until
    return until if left_out else None


def grounds(lake: Lake, name: Name, shapes: Sequence[TableSchema], floor: Sequence[int] | None) -> str:
    """What can make the next try succeed, in short: the lake's table, the shapes of its changes as the pipeline file
    has them in the lake, its snapshot, whose `floor` it is, and whether it is to have rows at all."""
    # Not as JSON, which leaves out what the pipeline file and the columns' new names make of a shape.
    facts = lake.version(lake.table(*name)), floor, lake.pipeline.changes_only(*name), [*map(repr, shapes)]
    return hashlib.sha256(repr(facts).encode()).hexdigest()[:16]


@dataclass
class Tries:
    """Those of one run. `grounds`: of a table, as they are now. `clock`: gives Unix s. `failed`: the tables that it has
    tried in vain; `left`: when those are tried next that it left out."""

    stopped: StoppedTables
    grounds: Callable[[Name], str]
    clock: Callable[[], float]
    failed: set[Name] = field(default_factory=set)
    left: dict[Name, float] = field(default_factory=dict)

    def made(self, name: Name, stop: Stopped, again: Callable[[Name, Stopped], bool]) -> bool:
        """Whether the table was tried now, by `again`, and all that waits of it is merged."""
        if name in self.failed:  # of the same changes, a moment ago
            return False
        if stop.took > QUICK and (at := next_try(stop, self.grounds(name), self.clock())):
            self.left[name] = at
            return False
        began = self.clock()
        if again(name, stop):
            return True
        took = self.clock() - began
        self.stopped.note_try(name, *((began + took, took, self.grounds(name)) if took > QUICK else ()))
        return False
