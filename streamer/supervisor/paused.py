"""How far a paused pipeline is behind its server. No process of it runs, so the server itself is asked."""

from __future__ import annotations

import time

from contract.checkpoint import Checkpoint
from contract.pipeline import Pipeline
from streamer import outputs
from streamer.servers import Servers

EVERY_SECONDS = 5.0


class PausedLag:
    """`seconds`: how long the oldest transaction that is not delivered has waited at most; None where that is not
    known. One thread asks, when that is `due`; another may end a pause meanwhile."""

    def __init__(self) -> None:
        self.seconds: float | None = None
        self._checkpoint: Checkpoint | None = None
        self._with_it = 0.0  # Unix seconds: when the pipeline last had all that the server had
        self._due = 0.0
        self._pauses = 0

    def end(self, with_it: float) -> None:
        """The pipeline runs again, or its place was moved. `with_it`: Unix seconds, when it last had everything."""
        self._pauses += 1
        self.seconds, self._checkpoint, self._due, self._with_it = None, None, 0.0, with_it

    @property
    def due(self) -> bool:
        return time.monotonic() >= self._due

    def ask(self, pipeline: Pipeline) -> None:
        """Waits for Kafka, or where the checkpoint is, and the server. Raises HeadraceError, PipelineFileError."""
        self._due = time.monotonic() + EVERY_SECONDS
        pause, seconds = self._pauses, None
        try:
            checkpoint = self._checkpoint or outputs.position(pipeline)
            if checkpoint is not None:  # else it was paused before its first start
                seconds = self._behind(pipeline, checkpoint, pause)
        finally:
            if pause == self._pauses:
                self.seconds = seconds

    def _behind(self, pipeline: Pipeline, checkpoint: Checkpoint, pause: int) -> float:
        now, facts = time.time(), Servers(pipeline).any().facts
        executed = (facts.by_place() if checkpoint.by_place else facts).executed
        with_it = now if checkpoint.covers(str(executed)) else self._with_it
        if pause == self._pauses:
            self._checkpoint, self._with_it = checkpoint, with_it
        return round(max(0.0, now - max(with_it, checkpoint.ts_ms / 1000)), 3)
