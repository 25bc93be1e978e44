"""Between which places of the binlog a read of a table is.

Where the table's engine has snapshot reads, a consistent read is of one commit, however many statements it has. Of
other tables (MyISAM, MEMORY, Aria) a statement shows what is there when it gets the table's lock, also what was written
since a transaction began. There a read is one statement, and its place is asked for behind it: a writer's changes are
in the binlog before it lets go of the lock. What the statement shows at the least nobody can tell: an INSERT may not be
seen for a moment though the binlog has it, and the server's GTID set too.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from spark.source.servers import Place
from spark.source.source import Source


@dataclass
class Instant:
    """`seen`, `exact`, `at`: as of Read. `end`: its `high`, known when all is read."""

    seen: str
    exact: bool
    at: float
    end: Place = ("", 0)


@contextmanager
def instant(source: Source, snapshots: bool) -> Iterator[Instant]:
    """What is read within it is of one moment: all of it where the table has `snapshots`, else one statement."""
    source.awake()  # the wait for a busy server may have been long
    found = Instant(certain(source, snapshots), snapshots and source.server.exact, time.time())
    if snapshots:
        with source.consistent() as found.end:
            yield found
    else:
        yield found
        found.end = source.position()


def certain(source: Source, snapshots: bool) -> str:
    """A GTID set that every read of the table from now on shows; empty where nobody can tell."""
    return source.seen() if snapshots else ""
