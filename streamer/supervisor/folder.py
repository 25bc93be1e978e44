"""The pipeline files that are served: found again and again, read when they have come to rest.

In: folders and files. Out: for each file the pipeline, or what is wrong with it, also beside the others: two files of
one name or one port cannot both run.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from contract import pipeline as pipeline_file
from contract.pipeline import Pipeline, PipelineFileError, Problem
from contract.pipeline_file import line_of, read_text, references
from contract.pipeline_sinks import StdoutOutput
from streamer.supervisor.code import foreign
from streamer.supervisor.errors import ServeError

ENDINGS = (".yaml", ".yml")
Stamp = tuple[int, ...]


@dataclass(frozen=True)
class Found:
    """`pipeline`: None where the file is wrong; `error`: what is."""

    path: Path
    stamp: Stamp
    pipeline: Pipeline | None
    error: PipelineFileError | None


class Folder:
    """`taken`: host and port of the supervisor itself. `allows_code`: whether a text may name code anew."""

    def __init__(self, places: Iterable[Path], taken: tuple[str, int], allows_code: bool = False) -> None:
        self._allows_code = allows_code
        self._places = [Path(place) for place in places]
        self._taken = taken
        self._found: dict[Path, Found] = {}
        self._last: dict[Path, Stamp] = {}
        for place in self._places:
            if not place.exists():
                hint = "Name folders of pipeline files, or files"
                raise ServeError("serving", str(place), "there is no such file or folder", hint)

    @property
    def home(self) -> Path | None:
        """Where a new pipeline's file goes; None where only single files are served."""
        return next((place for place in self._places if place.is_dir()), None)

    @property
    def state_file(self) -> Path:
        first = self._places[0]
        return (first if first.is_dir() else first.parent) / ".headrace-serve.json"

    def look(self, at_once: bool = False) -> list[Found]:
        """All files as they are now. One that was written since the last look is taken at the next: whoever writes it
        may not be done; and one that is gone is given once more. `at_once`: what is there now counts."""
        before, self._last = self._last, dict(self._stamps())
        # The files that were there first keep their names and ports against those that come.
        paths = [path for path in dict.fromkeys([*self._found, *self._last]) if path in self._last or path in before]
        if at_once:
            paths = [path for path in paths if path in self._last]
        found = {}
        for path in paths:
            stamp = self._last.get(path, ())
            old = self._found.get(path)
            if old is not None and (old.stamp == stamp or not (at_once or before.get(path) == stamp)):
                found[path] = old
            elif stamp and (at_once or before.get(path) == stamp):
                found[path] = self._read(path, stamp)
        self._found = found
        return self._apart(found.values())

    def _stamps(self) -> Iterator[tuple[Path, Stamp]]:
        for place in self._places:
            inside = sorted(place.iterdir()) if place.is_dir() else [place]
            for path in inside:
                named = place == path or (path.suffix in ENDINGS and not path.name.startswith("."))
                if named and path.is_file() and (stamp := _stamp(path)):
                    yield path, stamp

    def _read(self, path: Path, stamp: Stamp) -> Found:
        try:
            return Found(path, stamp, pipeline_file.load(path), None)
        except PipelineFileError as error:
            return Found(path, stamp, None, error)
        except Exception as error:  # whatever is in one file leaves the others alone
            problem = Problem(0, "file", f"cannot be read: {type(error).__name__}", "", "start from another file")
            return Found(path, stamp, None, PipelineFileError(path, [problem]))

    def _apart(self, files: Iterable[Found]) -> list[Found]:
        names: dict[str, Path] = {}
        ports = {self._taken[1]: "headrace serve itself"}
        result = []
        for one in files:
            if one.pipeline is not None and (problem := _clash(one.pipeline, names, ports)):
                error = PipelineFileError(one.path, [problem])
                result.append(replace(one, pipeline=None, error=error))
                continue
            if one.pipeline is not None:
                names[one.pipeline.name] = one.path
                ports[one.pipeline.streamer.http.port] = str(one.path)
            result.append(one)
        return result

    def place_of(self, text: str) -> Path:
        """Where a text would stand: the file of the pipeline that has its name, or a new one."""
        new = (self.home or self.state_file.parent) / "new.yaml"
        name = (read_text(text, None if self._allows_code else {}).tree or {}).get("name")
        same = (one.path for one in self._found.values() if one.pipeline is not None and one.pipeline.name == name)
        return next(same, new)

    def check(self, text: str, path: Path) -> Pipeline:
        """What the text would be in the file, beside the others. Raises PipelineFileError."""
        pipeline = self._parsed(text, path)
        files = self._apart(one for one in self._found.values() if one.path != path)
        others = [one.pipeline for one in files if one.pipeline is not None]
        names = {other.name: other.path for other in others}
        ports = {other.streamer.http.port: str(other.path) for other in others}
        if problem := _clash(pipeline, names, {**ports, self._taken[1]: "headrace serve itself"}, text):
            raise PipelineFileError(path, [problem])
        return pipeline

    def _parsed(self, text: str, path: Path) -> Pipeline:
        """Of a text that may name neither code nor values of the environment, but what is in the file already."""
        if self._allows_code:
            return pipeline_file.parse(text, path)
        there = self._found.get(path)
        code = partial(foreign, there=there.pipeline if there else None, text=text)
        return pipeline_file.parse(text, path, references(path), code)


def _clash(
    pipeline: Pipeline, names: dict[str, Path], ports: dict[int, str], text: str | None = None
) -> Problem | None:
    port = pipeline.streamer.http.port
    if pipeline.name in names:
        message = f"{pipeline.name} is the name of {names[pipeline.name]}, too"
        return Problem(line_of(pipeline.path, text, "name"), "name", message, "", "give one of the two another name")
    if port in ports:
        line = line_of(pipeline.path, text, "streamer", "http", "port")
        fix = f"give each pipeline a port of its own, such as streamer: {{http: {{port: {_free(ports)}}}}}"
        return Problem(line, "streamer.http.port", f"{port} is the port of {ports[port]}, too", "", fix)
    for number, output in enumerate(pipeline.sinks):
        if isinstance(output, StdoutOutput):  # nobody would read it
            message = "a pipeline that is served beside others has no standard output of its own"
            line = line_of(pipeline.path, text, "sinks", number, "type")
            return Problem(line, f"sinks[{number}].type", message, "", "start it by headrace run, or name another sink")
    return None


def _free(ports: dict[int, str]) -> int:
    return next(port for port in range(8181, 65536) if port not in ports)


def _stamp(path: Path) -> Stamp:
    """Another one where the file was written, or replaced; empty where it is gone."""
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return found.st_mtime_ns, found.st_size, found.st_ino
