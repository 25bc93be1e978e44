"""The supervisor: each pipeline file has a process, and what one of them does leaves the others alone.

One thread looks at the files and the processes; the API's threads ask and order. A lock keeps them apart.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import structlog

from contract.pipeline import Pipeline, PipelineFileError, Problem
from streamer import disk
from streamer.follow.file import differing
from streamer.supervisor.errors import ConflictError, ServeError, UnknownPipelineError
from streamer.supervisor.folder import Folder, Found
from streamer.supervisor.output import Output
from streamer.supervisor.unit import Unit
from streamer.supervisor.wanted import Wanted, WantedStates

log = structlog.get_logger("supervisor")
TURN_SECONDS = 0.1
LOOK_SECONDS = 1.0


class Supervisor:
    """`level`: of the processes' logs."""

    def __init__(self, folder: Folder, states: WantedStates, level: str, output: Output) -> None:
        self._folder = folder
        self._states = states
        self._level = level
        self._output = output
        self._lock = threading.RLock()
        self._units: dict[str, Unit] = {}
        self._looked = 0.0
        self._closing = False

    def run(self, stop: threading.Event) -> None:
        """Until the stop; then returns when all processes have ended, gracefully where they could."""
        self._look(at_once=True)
        while not stop.is_set():
            self._turn()
            stop.wait(TURN_SECONDS)
        self._close()

    def _turn(self) -> None:
        with self._lock:
            now = time.monotonic()
            if now - self._looked >= LOOK_SECONDS:
                self._look()
            for key, unit in list(self._units.items()):
                unit.turn(now)
                if unit.leaves and unit.process is None:
                    unit.watch.end()
                    del self._units[key]

    def _close(self) -> None:
        log.info("stopping all pipelines")
        with self._lock:
            self._closing = True
            for unit in self._units.values():
                unit.leaves = True
                unit.stop()
        while self._units:
            self._turn()
            time.sleep(TURN_SECONDS / 2)
        log.info("stopped")

    def _look(self, at_once: bool = False) -> None:
        with self._lock:
            self._looked = time.monotonic()
            if self._closing:
                return
            try:
                files = self._folder.look(at_once)
            except OSError as error:
                log.warning("the folder of pipeline files cannot be read", error=error.strerror, path=error.filename)
                return
            here = {self._key(found): found for found in reversed(files)}  # of two with one name the first one counts
            for key, unit in self._units.items():
                if key not in here and not unit.leaves:
                    log.info("file gone", pipeline=key)
                    unit.leaves = True
                    unit.stop()
            for key, found in here.items():
                self._take(key, found)

    def _take(self, key: str, found: Found) -> None:
        unit = self._units.get(key)
        if unit is None:
            unit = self._units[key] = Unit(key, found, self._states.of(key), self._level, self._output)
            if found.error is not None:
                unit.changed(found)
        elif unit.leaves:
            return  # its process is ending; the file is taken when it has
        elif (unit.found.stamp, unit.found.path, str(unit.found.error)) != (found.stamp, found.path, str(found.error)):
            unit.changed(found)

    def _key(self, found: Found) -> str:
        if found.pipeline is not None:
            return found.pipeline.name
        known = (unit.key for unit in self._units.values() if unit.found.path == found.path)
        taken = {unit.key for unit in self._units.values()}
        stem = found.path.stem
        return next(known, found.path.name if stem in taken else stem)

    def units(self) -> list[Unit]:
        with self._lock:
            return [unit for _, unit in sorted(self._units.items())]

    def unit(self, name: str) -> Unit:
        """Raises UnknownPipelineError."""
        with self._lock:
            if name not in self._units:
                known = ", ".join(sorted(self._units)) or "none"
                hint = f"Known are: {known}."
                raise UnknownPipelineError("looking for", f"pipeline {name}", "there is none of this name", hint)
            return self._units[name]

    def pipeline(self, name: str) -> Pipeline:
        """As its file says it now. Raises UnknownPipelineError, PipelineFileError."""
        found = self.unit(name).found
        if found.pipeline is None:
            raise found.error or PipelineFileError(found.path, [])
        return found.pipeline

    def text(self, name: str) -> str:
        """Of the file as it is now. Raises UnknownPipelineError, ServeError."""
        path = self.unit(name).found.path
        try:
            return path.read_bytes().decode("utf-8", "replace")
        except OSError as error:
            raise _disk(path, error, "reading") from None

    def check(self, text: str) -> Pipeline:
        """What the text would be as a file of its own. Raises PipelineFileError."""
        with self._lock:
            return self._folder.check(text, self._folder.place_of(text))

    def create(self, text: str, start: bool) -> Unit:
        """Raises PipelineFileError, ConflictError, ServeError."""
        with self._lock:
            home = self._folder.home
            if home is None:
                hint = "Serve a folder: headrace serve pipelines/"
                raise ConflictError("making", "a pipeline", "single files are served, and no folder", hint)
            name = self._folder.check(text, home / "new.yaml").name
            path = home / f"{name}.yaml"
            if name in self._units or path.exists():
                hint = "Change the one that is there (PUT), or choose another name."
                raise ConflictError("making", f"pipeline {name}", f"there is {path.name} already", hint)
            self._states.set(name, "running" if start else "stopped")
            self._write(path, text)
            log.info("pipeline made", pipeline=name, path=str(path))
            return self.unit(name)

    def change(self, name: str, text: str) -> Unit:
        """Raises UnknownPipelineError, PipelineFileError, ConflictError, ServeError."""
        with self._lock:
            unit = self._free(name)
            found = self._folder.check(text, unit.found.path)
            if unit.found.pipeline is not None and found.name != name:
                fix = f"write name: {name}; another name is another pipeline, with topics of its own"
                raise PipelineFileError(unit.found.path, [Problem(0, "name", f"is not {name}", "", fix)])
            old = unit.found.pipeline
            self._write(unit.found.path, text)
            unit = self.unit(found.name)
            if old is not None and differing(old, found):  # its tables alone it takes by itself
                unit.restart()
            log.info("pipeline changed", pipeline=found.name)
            return unit

    def delete(self, name: str) -> None:
        """Takes the file away, and ends the process. Raises UnknownPipelineError, ConflictError, ServeError."""
        with self._lock:
            unit = self._free(name)
            try:
                unit.found.path.unlink(missing_ok=True)
            except OSError as error:
                raise _disk(unit.found.path, error) from None
            self._states.set(name, "running")
            unit.leaves = True
            unit.stop()
            self._look(at_once=True)
            log.info("pipeline deleted", pipeline=name, path=str(unit.found.path))

    def _write(self, path: Path, text: str) -> None:
        try:
            disk.replace(path, text.encode("utf-8"))
        except OSError as error:
            raise _disk(path, error) from None
        self._look(at_once=True)

    def start(self, name: str) -> Unit:
        """Of one that runs nothing is changed. Raises UnknownPipelineError, ConflictError, PipelineFileError."""
        with self._lock:
            unit = self._free(name)
            if unit.wanted == "paused":
                raise ConflictError("starting", f"pipeline {name}", "it is paused", "Resume it.")
            if unit.found.error is not None:
                raise unit.found.error
            if unit.process is None:
                unit.afresh()
            return self._want(unit, "running")

    def stop(self, name: str) -> Unit:
        """Raises UnknownPipelineError, ConflictError."""
        with self._lock:
            unit = self._want(self._free(name), "stopped")
            unit.stop()
            return unit

    def pause(self, name: str) -> Unit:
        """Raises UnknownPipelineError, ConflictError."""
        with self._lock:
            unit = self._free(name)
            if unit.wanted == "stopped":
                raise ConflictError("pausing", f"pipeline {name}", "it is stopped", "Start it, if it is to run.")
            self._want(unit, "paused").stop()
            return unit

    def resume(self, name: str) -> Unit:
        """Raises UnknownPipelineError, ConflictError."""
        with self._lock:
            unit = self._free(name)
            if unit.wanted == "stopped":
                raise ConflictError("resuming", f"pipeline {name}", "it is stopped, not paused", "Start it.")
            if unit.wanted == "paused":
                unit.afresh()
            return self._want(unit, "running")

    @contextmanager
    def standing(self, name: str, what: str) -> Iterator[Pipeline]:
        """For as long as the block lasts the pipeline, which must not run, is not started, changed or deleted. Raises
        UnknownPipelineError, ConflictError, PipelineFileError."""
        with self._lock:
            unit = self._free(name)
            if unit.found.pipeline is None:
                raise unit.found.error or ConflictError(what, f"pipeline {name}", "its file is wrong", "Mend it.")
            if unit.process is not None or unit.state not in ("paused", "stopped", "failed", "finished"):
                raise ConflictError(what, f"pipeline {name}", f"it is {unit.state}", "Pause it first, or stop it.")
            unit.held = what
        try:
            yield unit.found.pipeline
        finally:
            with self._lock:
                unit.held = ""

    def _want(self, unit: Unit, wanted: Wanted) -> Unit:
        self._states.set(unit.key, wanted)
        unit.wanted = wanted
        return unit

    def _free(self, name: str) -> Unit:
        unit = self.unit(name)
        if unit.held or unit.leaves:
            doing = unit.held or "deleting it"
            raise ConflictError("changing", f"pipeline {name}", f"{doing} is under way", "Ask again in a moment.")
        return unit


def _disk(path: Path, error: OSError, operation: str = "writing") -> ServeError:
    hint = "Give the supervisor the right to write there, or edit the file by hand."
    return ServeError(operation, str(path), error.strerror or str(error), hint)
