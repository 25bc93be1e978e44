"""The places between any two actions of a compaction, a maintenance or an erasure, where a test ends its driver.

`reached(point)` stands behind each action. It costs one comparison an action, never one a row, and does nothing unless
HEADRACE_FAILPOINT names the point: there the process group, Java and Python, ends by SIGKILL, as if the machine went
down. `marks written:2` is the second time that a run gets there.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

VARIABLE = "HEADRACE_FAILPOINT"
POINTS = (  # in the order of a run
    "file written",  # one of the lake's small files, beside its name and not renamed yet; of any run's writes
    "run noted",
    "read topics kept",
    "topic ids kept",
    "records put aside",
    "changes written",
    "marks written",
    "old marks removed",
    "landed",
    "letters counted",
    "table made",
    "newer rows taken in",
    "table made way",
    "snapshot written",
    "snapshot noted",
    "staged rows removed",
    "staging removed",
    "gap noted",
    "columns renamed",
    "rename noted",
    "shape changes noted",
    "evolution noted",
    "truncation noted",
    "rows truncated",
    "deletion vectors purged",
    "deletion vectors ended",
    "column added",
    "columns widened",
    "table merged",
    "table stopped",
    "merged",
    "table released",
    "repair noted",
    "part replaced",
    "status written",
    "part closed",
    "part removed",
    "run ended",
)
LOSS = (  # where records are gone that the lake has not read
    "loss noted",
    "statements begun anew",
)
AHEAD = (  # where a snapshot is applied that ended behind the lake's checkpoint
    "snapshot foretold",
)
UNDONE = (  # where somebody else wrote into `_changes` and took that back
    "merge begun anew",
)
BEGUN = (  # where a query that lands changes has its first batch
    "marks begun",
)
REFUSED = (  # where a table takes no part
    "repair forgotten",
)
SLOW = (  # where a stopped table was tried for long
    "try noted",
)
CLEANED = (  # where Delta has no log any more of what was merged last
    "merge's beginning noted",
    "merge's beginning forgotten",
)
MAINTENANCE = (  # likewise; the files, table by table
    "history begins later",
    "history removed",
    "marked rows taken out",
    "small files joined",
    "log shortened",
    "old files removed",
    "maintenance noted",
)
ERASURE = (  # of an erasure, between two compactions
    "erasure noted",
    "tombstones sent",
    "rows erased",
    "changes erased",
    "letters erased",
    "findings erased",
    "chunks erased",
    "staging erased",
    "marked rows purged",
    "log begun anew",
    "log forgotten",
    "erasure recorded",
    "erasure ended",
)
ALL = (*POINTS, *LOSS, *AHEAD, *UNDONE, *BEGUN, *REFUSED, *SLOW, *CLEANED, *MAINTENANCE, *ERASURE)

Hook = Callable[[str], None]


class Killing:
    """Ends the process group where a point is reached for the `time`th time."""

    def __init__(self, point: str, time: int = 1) -> None:
        if point not in ALL:
            raise ValueError(f"{VARIABLE}: there is no point {point!r}; there are: {', '.join(ALL)}")
        self.point, self.left, self.lock = point, time, threading.Lock()

    def __call__(self, point: str) -> None:
        if point != self.point:
            return
        with self.lock:  # tables are merged side by side
            self.left -= 1
            if self.left == 0:
                os.killpg(os.getpgrp(), signal.SIGKILL)
                signal.pause()  # nothing more is done until the signal is delivered


def _from_environment() -> Hook | None:
    point, _, time = os.environ.get(VARIABLE, "").partition(":")
    return Killing(point, int(time or 1)) if point else None


_hook: Hook | None = _from_environment()


def reached(point: str) -> None:
    """Says that the action before it is done."""
    if _hook is not None:
        _hook(point)


@contextmanager
def hooked(hook: Hook) -> Iterator[None]:
    """Calls `hook` with each point that this process reaches meanwhile; what it raises goes through the run."""
    global _hook
    before, _hook = _hook, hook
    try:
        yield
    finally:
        _hook = before
