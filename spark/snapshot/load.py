"""How much of the server a snapshot may take: rows a second, and when it waits for others.

It looks before each group of chunks; with a limit of rows a second the groups are of about one second's rows.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from contract.pipeline_snapshot import Snapshot
from spark.errors import LakeError
from spark.source.rate import Rate
from spark.source.source import Source

STEP = 1.0  # seconds between two looks
TOLD = 30.0  # seconds between two lines about one wait
PATIENCE = 3600.0  # seconds of one wait
LEAST = 100  # rows of a chunk
GROUP = 8  # chunks that a reader takes one after the other in one Spark job
# What the run behind one that gave up does; of the other jobs nothing that was read is kept.
LATER = {
    "the snapshot": "the next run goes on where it stands",
    "the check": "the next one takes up what it has kept of its reads",
}


@dataclass
class Load:
    """`server`: the one whose rows are read. `job`: what reads them, in its messages."""

    rules: Snapshot
    server: Source
    tell: Callable[[str], None] = print
    job: str = "the snapshot"
    _rate: Rate = field(init=False)

    def __post_init__(self) -> None:
        self._rate = Rate(self.rules.max_rows_per_second)

    @property
    def chunk_rows(self) -> int:
        most, limit = self.rules.chunk_rows, self.rules.max_rows_per_second
        return max(LEAST, min(most, limit // self.rules.parallelism)) if limit else most

    @property
    def group(self) -> int:
        """Chunks of a group."""
        return self.rules.parallelism * (1 if self.rules.max_rows_per_second else GROUP)

    def prove(self) -> None:
        """Raises LakeError for a limit that can never be asked."""
        if self.rules.max_replica_lag_seconds is not None and not self._channels():
            raise LakeError(
                f"{self.server.pipeline.source.where} replicates from no server, and snapshot.max_replica_lag_seconds "
                f"is of the replica that is read: set snapshot.replica in {self.server.pipeline.path}, or leave it out"
            )

    def wait(self) -> None:
        """Returns once the next group may be read. Raises LakeError where the server is busy for too long."""
        time.sleep(max(0.0, self._rate.free - time.monotonic()))
        began, told = time.monotonic(), -TOLD
        while busy := self._busy():
            waited = time.monotonic() - began
            if waited > PATIENCE:
                later = LATER.get(self.job, "the next run reads all of it again")
                raise LakeError(
                    f"{busy} for {waited:,.0f} s: {self.job} gives up, and {later}. "
                    f"Raise the limit in {self.server.pipeline.path}, or run it at another time"
                )
            if waited - told >= TOLD:
                self.tell(f"waiting: {busy}")
                told = waited
            time.sleep(STEP)

    def took(self, rows: int, began: float) -> None:
        """Notes a group of rows, whose read began at that time of the monotonic clock."""
        self._rate.took(rows, began)

    def _busy(self) -> str | None:
        where, rules = self.server.pipeline.source.where, self.rules
        if rules.max_threads_running is not None:
            running = self._threads()
            if running > rules.max_threads_running:
                return f"{where} runs {running} threads, snapshot.max_threads_running is {rules.max_threads_running}"
        if rules.max_replica_lag_seconds is not None:
            lags = self._channels()
            if not lags or None in lags:
                return f"{where} does not replicate"
            if (lag := max(filter(None, lags), default=0.0)) > rules.max_replica_lag_seconds:
                limit = rules.max_replica_lag_seconds
                return f"{where} is {lag:g} s behind, snapshot.max_replica_lag_seconds is {limit:g}"
        return None

    def _threads(self) -> int:
        row = self.server.row("SHOW GLOBAL STATUS LIKE 'Threads_running'")
        return int(row[1]) if row else 0

    def _channels(self) -> list[float | None]:
        """How many seconds each of the server's replication channels is behind; None of one that stands still."""
        found = self.server.channels("leave out snapshot.max_replica_lag_seconds")
        values = [next(v for name, v in row.items() if name.startswith("Seconds_Behind")) for row in found]
        return [None if value is None else float(value) for value in values]
