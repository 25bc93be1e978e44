"""How the archive stands: a small JSON file in its folder, replaced as a whole, at most every second."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any, Literal

from contract.pipeline import Pipeline
from contract.pipeline_archive import Archive
from streamer.archive.errors import NoArchiveError
from streamer.archive.store import taken
from streamer.errors import HeadraceError

FILE = "archive-status.json"
SECONDS = 1.0
State = Literal["starting", "archiving", "waiting", "stopped", "failed"]


class Status:
    """`position`: bytes of `file` that are archived. `behind_seconds`: age of the last event that came, 0 when the
    server has no more. Times are Unix seconds."""

    def __init__(self, pipeline: str, target: str, folder: Path) -> None:
        self.state: State = "starting"
        self.server = self.server_uuid = self.file = ""
        self.position = self.files_closed = self.bytes = 0
        self.behind_seconds: float | None = None
        self.uploads_waiting: int | None = None  # of an object store alone
        self.error: dict[str, Any] | None = None
        self._fixed = {"pipeline": pipeline, "target": target, "pid": os.getpid(), "started_at": round(time.time(), 3)}
        self._path = folder / FILE
        self._written = 0.0

    def note(self, error: HeadraceError) -> None:
        at = round(time.time(), 3)
        self.error = {"at": at, "kind": error.kind, "message": str(error), "next_step": error.hint}

    def enter(self, state: State) -> None:
        self.state = state
        self.write()

    def tick(self, now: float) -> None:
        """`now`: monotonic seconds."""
        if now - self._written >= SECONDS:
            self._written = now
            self.write()

    def write(self) -> None:
        """A disk without room keeps the old one."""
        beside = self._path.with_suffix(".new")
        try:
            beside.write_text(json.dumps(self.as_dict()) + "\n")
            beside.replace(self._path)
        except OSError:
            beside.unlink(missing_ok=True)

    def as_dict(self) -> dict[str, Any]:
        return {
            **self._fixed,
            "state": self.state,
            "server": self.server,
            "server_uuid": self.server_uuid,
            "file": self.file,
            "position": self.position,
            "behind_seconds": self.behind_seconds,
            "files_closed": self.files_closed,
            "bytes": self.bytes,
            "uploads_waiting": self.uploads_waiting,
            "last_error": self.error,
            "written_at": round(time.time(), 3),
        }


def read(pipeline: Pipeline, archive: Archive) -> dict[str, Any]:
    """What the pipeline's archive said last, and whether it `runs`. Raises NoArchiveError."""
    path = archive.folder / FILE
    try:
        found: dict[str, Any] = json.loads(path.read_text())
    except (OSError, ValueError) as error:
        hint = f"Start it with: headrace archive {pipeline.path}"
        raise NoArchiveError("reading", str(path), f"it cannot be read ({error})", hint) from None
    return {**found, "runs": taken(archive.folder)}
