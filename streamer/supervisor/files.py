"""Pipelines that are made, changed and deleted over the API: files of the folder, with the text as it was sent."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import structlog

from contract.pipeline import Pipeline, PipelineFileError, Problem
from streamer import disk
from streamer.follow.file import differing
from streamer.supervisor.errors import ConflictError, ServeError
from streamer.supervisor.folder import Folder
from streamer.supervisor.unit import Unit
from streamer.supervisor.wanted import WantedStates

if TYPE_CHECKING:
    from streamer.supervisor.supervisor import Supervisor

log = structlog.get_logger("supervisor")


class Files:
    """Those of one supervisor."""

    def __init__(self, supervisor: Supervisor, folder: Folder, states: WantedStates) -> None:
        self._supervisor = supervisor
        self._folder = folder
        self._states = states

    def pipeline(self, name: str) -> Pipeline:
        """As its file says it now. Raises UnknownPipelineError, PipelineFileError."""
        found = self._supervisor.unit(name).found
        if found.pipeline is None:
            raise found.error or PipelineFileError(found.path, [])
        return found.pipeline

    def text(self, name: str) -> str:
        """Of the file as it is now. Raises UnknownPipelineError, ServeError."""
        path = self._supervisor.unit(name).found.path
        try:
            return path.read_bytes().decode("utf-8", "replace")
        except OSError as error:
            raise _disk(path, error, "reading") from None

    def check(self, text: str) -> Pipeline:
        """What the text would be as a file of its own. Raises PipelineFileError."""
        with self._supervisor.lock:
            return self._folder.check(text, self._folder.place_of(text))

    def create(self, text: str, start: bool) -> Unit:
        """Raises PipelineFileError, ConflictError, ServeError."""
        with self._supervisor.lock:
            home = self._folder.home
            if home is None:
                hint = "Serve a folder: headrace serve pipelines/"
                raise ConflictError("making", "a pipeline", "single files are served, and no folder", hint)
            name = self._folder.check(text, home / "new.yaml").name
            path = home / f"{name}.yaml"
            if self._supervisor.has(name):
                self._supervisor.free(name)  # one that is being deleted is gone in a moment
            if self._supervisor.has(name) or path.exists():
                hint = "Change the one that is there (PUT), or choose another name."
                raise ConflictError("making", f"pipeline {name}", f"there is {path.name} already", hint)
            self._states.set(name, "running" if start else "stopped")
            self._write(path, text)
            log.info("pipeline made", pipeline=name, path=str(path))
            return self._supervisor.unit(name)

    def change(self, name: str, text: str) -> Unit:
        """Raises UnknownPipelineError, PipelineFileError, ConflictError, ServeError."""
        with self._supervisor.lock:
            unit = self._supervisor.free(name)
            found = self._folder.check(text, unit.found.path)
            if unit.found.pipeline is not None and found.name != name:
                fix = f"write name: {name}; another name is another pipeline, with topics of its own"
                raise PipelineFileError(unit.found.path, [Problem(0, "name", f"is not {name}", "", fix)])
            old = unit.found.pipeline
            self._write(unit.found.path, text)
            unit = self._supervisor.unit(found.name)
            if old is not None and differing(old, found):  # its tables alone it takes by itself
                unit.restart()
            log.info("pipeline changed", pipeline=found.name)
            return unit

    def delete(self, name: str) -> None:
        """Takes the file away, and ends the process. Raises UnknownPipelineError, ConflictError, ServeError."""
        with self._supervisor.lock:
            unit = self._supervisor.free(name)
            try:
                unit.found.path.unlink(missing_ok=True)
            except OSError as error:
                raise _disk(unit.found.path, error) from None
            self._states.set(name, "running")
            unit.leaves = True
            unit.stop()
            self._supervisor.look(at_once=True)
            log.info("pipeline deleted", pipeline=name, path=str(unit.found.path))

    def _write(self, path: Path, text: str) -> None:
        try:
            disk.replace(path, text.encode("utf-8"))
        except OSError as error:
            raise _disk(path, error) from None
        self._supervisor.look(at_once=True)


def _disk(path: Path, error: OSError, operation: str = "writing") -> ServeError:
    hint = "Give the supervisor the right to write there, or edit the file by hand."
    return ServeError(operation, str(path), error.strerror or str(error), hint)
