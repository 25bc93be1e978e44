"""What the pipeline file says of the tables now, checked, for the stream to take.

A thread of its own looks at the file, so that neither a slow disk nor the questions to the server hold the stream up. A
file is read when it has rested from one look to the next: whoever writes it may not be done. What is wrong with it is
told, and the tables that were followed before stay.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import structlog
from pydantic import BaseModel

from contract import pipeline as pipeline_file
from contract.pipeline import Pipeline, PipelineFileError, Tables
from streamer.errors import HeadraceError

log = structlog.get_logger("streamer")
LOOK_SECONDS = 1.0
NOT_OURS = frozenset({"path", "tables", "lake", "snapshot", "compaction", "quality", "maintenance", "archive"})
RESTART = "Restart the streamer with this file, or take that back."
Stamp = tuple[int, ...]


MEND = "Mend the file; it is read again by itself."


class FileWatch:
    """`pipeline`: the one that runs, with the tables that are followed now. `check(pipeline)` raises HeadraceError
    where its tables cannot be followed. `offered`: tables that wait for the stream to take them. `trouble`: why the
    file is not followed as it is; None where it is."""

    def __init__(self, pipeline: Pipeline, check: Callable[[Pipeline], None]) -> None:
        self.pipeline = pipeline
        self._check = check
        self.offered: Tables | None = None
        self.trouble: dict[str, Any] | None = None
        self._last: Stamp | None = None  # of the file at the last look
        self._settled: Stamp | None = None  # of the file of which nothing is left to do

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Looks for as long as the block lasts."""
        over = threading.Event()

        def run() -> None:
            while not over.wait(LOOK_SECONDS):
                self.look()

        context = contextvars.copy_context()  # what each log line carries
        threading.Thread(target=context.run, args=(run,), name="pipeline-file", daemon=True).start()
        try:
            yield
        finally:
            over.set()

    def look(self) -> None:
        """To be called now and then."""
        before, self._last = self._last, self._stamp()
        if self._last == self._settled or self._last != before:
            return
        try:
            self._take(pipeline_file.load(self.pipeline.path))
            self._settled = self._last
        except PipelineFileError as error:
            self._settled = self._last
            self._keep("pipeline_file", str(error), MEND)
        except HeadraceError as error:
            if not error.retryable:
                self._settled = self._last
            self._keep(error.kind, str(error), error.hint)
        except Exception as error:  # whatever it is, the next change of the file is looked at again
            self._settled = self._last
            self._keep("pipeline_file", f"{self.pipeline.path}: {error!r}", MEND)

    def _stamp(self) -> Stamp:
        """Another one where the file was written, or replaced."""
        try:
            found = self.pipeline.path.stat()
        except OSError:
            return ()
        return found.st_mtime_ns, found.st_size, found.st_ino

    def _take(self, found: Pipeline) -> None:
        """Raises HeadraceError."""
        self.offered = None
        if keys := differing(self.pipeline, found):
            what = f"{', '.join(keys)} changed in {found.path}, which takes effect at a start alone"
            tables = "; its tables wait for that, too" if found.tables != self.pipeline.tables else ""
            self._keep("restart", what + tables, RESTART)
            return
        if found.tables != self.pipeline.tables:
            self._check(found)
            self.offered = found.tables
        self.trouble = None

    def _keep(self, kind: str, message: str, next_step: str) -> None:
        """The tables stay as they are; said once."""
        self.offered = None
        if self.trouble is None or self.trouble["message"] != message:
            self.trouble = {"at": round(time.time(), 3), "kind": kind, "message": message, "next_step": next_step}
            log.warning("pipeline file not taken", kind=kind, error=message, next_step=next_step)

    def waits(self, message: str, next_step: str) -> None:
        """The stream cannot take the offered tables yet."""
        offered = self.offered
        self._keep("waiting", message, next_step)
        self.offered = offered

    def taken(self, tables: Tables) -> None:
        """The stream follows them now. The file is read once more: it may have been written meanwhile."""
        self.pipeline = self.pipeline.model_copy(update={"tables": tables})
        self.offered = self.trouble = self._settled = None


def differing(old: BaseModel, new: BaseModel, at: str = "") -> list[str]:
    """The keys of the streamer's own sections, the tables left out, that have other values."""
    found: list[str] = []
    for name in type(old).model_fields:
        one, other = getattr(old, name), getattr(new, name)
        if one == other or (not at and name in NOT_OURS):
            continue
        both = isinstance(one, BaseModel) and type(one) is type(other)  # a section may choose its form
        found += differing(one, other, f"{at}{name}.") if both else [at + name]
    return found
