"""The wait of a check until the lake is complete up to a place of the source's binlog."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import inf

from contract.pipeline import Pipeline
from contract.status import LakeStatus, parse
from spark.errors import LakeError, PassingError
from spark.lake.lake import Lake
from spark.proof.rewind import Position
from spark.result import for_a_person, tell_wait

POLL_SECONDS = 1.0


@dataclass
class Waiting:
    """Of a check that began in `epoch`. `tell` gets lines of progress. `compact` is called meanwhile, where it is the
    check itself that compacts."""

    lake: Lake
    epoch: int
    tell: Callable[[str], None]
    compact: Callable[[], None] | None

    @property
    def _pipeline(self) -> Pipeline:
        return self.lake.pipeline

    def until_complete(self, names: Sequence[str], high: Position, executed: str, seconds: float) -> LakeStatus:
        """The lake's status once it is complete up to the place. `executed`: the GTID set that the source had after it;
        a binlog that was rotated since has no commit at its end, so the set counts too. Raises LakeError."""
        deadline, told, last = time.monotonic() + seconds, -inf, ""
        while True:
            text = self.lake.text(self.lake.status)
            status = parse(text) if text else None
            if status and self._complete(status, names, executed, high):
                return status
            at = status.checkpoint.gtid_set if status and status.checkpoint else "nothing yet"
            if time.monotonic() > deadline:
                raise PassingError(
                    f"after {seconds:.0f} s the lake is complete up to {at}, the check needs {executed}: do the "
                    f"streamer and the DAG {self._pipeline.name}.compaction (or `headrace compact "
                    f"{self._pipeline.path}`) run? quality.wait_seconds is the limit"
                )
            if told == -inf:
                self._begin_wait(executed, made=status is not None)
            if at != last and time.monotonic() - told > 15:
                self.tell(f"waiting for a compaction to complete the lake up to {executed}; it has {at}{self._by()}")
                told, last = time.monotonic(), at
            if self.compact is not None:
                self.compact()
            time.sleep(POLL_SECONDS)

    def _begin_wait(self, executed: str, made: bool) -> None:
        """Raises LakeError where nobody but a person could start what is waited for, and there is no lake yet."""
        if self.compact is None and not made and for_a_person():
            raise LakeError(
                f"{self.lake.root} has no lake yet, and no compaction was ever there to make one: add --compact, or "
                f"start `headrace compact {self._pipeline.path} --loop`, then verify again"
            )
        tell_wait(executed)

    def _by(self) -> str:
        """By what, where it is not this check itself."""
        if self.compact is not None:
            return ""
        loop, dag = f"`headrace compact {self._pipeline.path} --loop`", f"{self._pipeline.name}.compaction"
        return f". That is made by {loop}, the DAG {dag}, or this check's --compact"

    def _complete(self, status: LakeStatus, names: Sequence[str], executed: str, high: Position) -> bool:
        c = status.checkpoint
        if c is None:
            return False
        if c.epoch < self.epoch:  # no compaction has come to what the streamer sent since it moved
            return False
        if c.epoch > self.epoch:
            raise PassingError("the streamer moved to another server during the check: verify again")
        # A snapshot's rows may be younger than the lake's checkpoint, until that has passed the snapshot's end. Where
        # the server itself has not got there, nobody can wait for it: a failover has lost what there was then.
        tables = [status.tables[name] for name in names if name in status.tables]
        passed = all(status.covers(table.snapshot.p1) for table in tables if table.snapshot)
        return (c.place >= high and passed) or status.covers(executed)
