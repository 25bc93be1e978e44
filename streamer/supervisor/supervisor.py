"""The supervisor: each pipeline file has a process, and what one of them does leaves the others alone.

One thread looks at the files and the processes; the API's threads ask and order. A lock keeps them apart.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import structlog

from contract.pipeline import Pipeline
from streamer.supervisor.errors import ConflictError, UnknownPipelineError
from streamer.supervisor.files import Files
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
        self.lock = threading.RLock()
        self._units: dict[str, Unit] = {}
        self._looked = 0.0
        self._closing = False
        self.files = Files(self, folder, states)

    def run(self, stop: threading.Event) -> None:
        """Until the stop; then returns when all processes have ended, gracefully where they could."""
        self.look(at_once=True)
        while not stop.is_set():
            self._turn()
            stop.wait(TURN_SECONDS)
        self._close()

    def _turn(self) -> None:
        with self.lock:
            now = time.monotonic()
            if now - self._looked >= LOOK_SECONDS:
                self.look()
            for key, unit in list(self._units.items()):
                unit.turn(now)
                if unit.leaves and unit.process is None:
                    unit.watch.end()
                    del self._units[key]

    def _close(self) -> None:
        log.info("stopping all pipelines")
        with self.lock:
            self._closing = True
            for unit in self._units.values():
                unit.leaves = True
                unit.stop()
        while self._units:
            self._turn()
            time.sleep(TURN_SECONDS / 2)
        log.info("stopped")

    def look(self, at_once: bool = False) -> None:
        """At the files; `at_once`: one that was written a moment ago is done."""
        with self.lock:
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
        with self.lock:
            return [unit for _, unit in sorted(self._units.items())]

    def has(self, name: str) -> bool:
        with self.lock:
            return name in self._units

    def unit(self, name: str) -> Unit:
        """Raises UnknownPipelineError."""
        with self.lock:
            if name not in self._units:
                known = ", ".join(sorted(self._units)) or "none"
                hint = f"Known are: {known}."
                raise UnknownPipelineError("looking for", f"pipeline {name}", "there is none of this name", hint)
            return self._units[name]

    def start(self, name: str) -> Unit:
        """Of one that runs nothing is changed. Raises UnknownPipelineError, ConflictError, PipelineFileError."""
        with self.lock:
            unit = self.free(name)
            if unit.wanted == "paused":
                raise ConflictError("starting", f"pipeline {name}", "it is paused", "Resume it.")
            if unit.found.error is not None:
                raise unit.found.error
            if unit.process is None:
                unit.afresh()
            return self._want(unit, "running")

    def stop(self, name: str) -> Unit:
        """Raises UnknownPipelineError, ConflictError."""
        with self.lock:
            unit = self._want(self.free(name), "stopped")
            unit.stop()
            return unit

    def pause(self, name: str) -> Unit:
        """Raises UnknownPipelineError, ConflictError."""
        with self.lock:
            unit = self.free(name)
            if unit.wanted == "stopped":
                raise ConflictError("pausing", f"pipeline {name}", "it is stopped", "Start it, if it is to run.")
            self._want(unit, "paused").stop()
            return unit

    def resume(self, name: str) -> Unit:
        """Raises UnknownPipelineError, ConflictError."""
        with self.lock:
            unit = self.free(name)
            if unit.wanted == "stopped":
                raise ConflictError("resuming", f"pipeline {name}", "it is stopped, not paused", "Start it.")
            if unit.wanted == "paused":
                unit.afresh()
            return self._want(unit, "running")

    @contextmanager
    def standing(self, name: str, what: str) -> Iterator[Pipeline]:
        """For as long as the block lasts the pipeline, which must not run, is not started, changed or deleted. Raises
        UnknownPipelineError, ConflictError, PipelineFileError."""
        with self.lock:
            unit = self.free(name)
            if unit.found.pipeline is None:
                raise unit.found.error or ConflictError(what, f"pipeline {name}", "its file is wrong", "Mend it.")
            if unit.process is not None or unit.state not in ("paused", "stopped", "failed", "finished"):
                raise ConflictError(what, f"pipeline {name}", f"it is {unit.state}", "Pause it first, or stop it.")
            unit.held = what
        try:
            yield unit.found.pipeline
        finally:
            with self.lock:
                unit.held = ""
                unit.watch.moved()

    def _want(self, unit: Unit, wanted: Wanted) -> Unit:
        self._states.set(unit.key, wanted)
        unit.wanted = wanted
        return unit

    def free(self, name: str) -> Unit:
        """Of which nothing else is under way. Raises UnknownPipelineError, ConflictError."""
        unit = self.unit(name)
        if unit.held or unit.leaves:
            doing = unit.held or "deleting it"
            raise ConflictError("changing", f"pipeline {name}", f"{doing} is under way", "Ask again in a moment.")
        return unit
