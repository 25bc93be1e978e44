"""P0: the checkpoint of the streamer at which the read of a table begins.

It lies behind the moment at which the table's shape was asked for, and the shape is asked for again when the rows are
read. So no ALTER TABLE is between P0 and the rows: a column's default, which it puts into rows without an event, could
else be in the rows, and not in the changes behind P0 that take their place.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from contract.checkpoint import Checkpoint
from spark.errors import LakeError
from spark.source.source import Source

STEP = 0.3  # seconds between two looks at the commit log
PATIENCE = 60.0  # seconds in which the streamer may stand still


@dataclass
class Places:
    """`last`: the newest checkpoint that is known; `newest` asks the commit log for another. `refuse` raises LakeError
    for one at which no snapshot may begin. `job`: what waits for a checkpoint, in its messages."""

    source: Source
    last: Checkpoint
    newest: Callable[[], Checkpoint | None]
    refuse: Callable[[Checkpoint], None] = lambda checkpoint: None
    tell: Callable[[str], None] = print
    job: str = "the snapshot"

    def now(self) -> Checkpoint:
        """A checkpoint with all that the server has executed by now. Waits for it, as long as the streamer goes on."""
        executed, since, told = self.source.executed(), time.monotonic(), False
        while not self.last.covers(executed):
            if not told:
                self.tell("waiting until the streamer has released what the server has executed by now")
                told = True
            if time.monotonic() - since > PATIENCE:
                raise LakeError(
                    f"the streamer has released {self.last.gtid_set}, and nothing more for {PATIENCE:.0f} s, while the "
                    f"server has executed {executed}: {self.job} begins behind that. See what the streamer does "
                    f"(headrace status), then run {self.job} again"
                )
            if self._moved():
                since = time.monotonic()
            else:
                time.sleep(STEP)
        return self.last

    def _moved(self) -> bool:
        found = self.newest()
        if found is None or (found.gtid_set == self.last.gtid_set and found.seen_set == self.last.seen_set):
            return False
        if (found.server_uuid, found.epoch) != (self.last.server_uuid, self.last.epoch):
            raise LakeError(
                f"the streamer has moved to another server, or was moved to another place, while {self.job} waited "
                f"for it: run {self.job} again"
            )
        self.refuse(found)
        self.last = found
        return True
