"""The pipeline files of a folder: which are valid, and how their streamers stand."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from contract import pipeline as pipeline_file
from contract.pipeline import PipelineFileError
from contract.pipeline_file import Problem, line_of
from streamer.control.running import ask
from streamer.control.tables import COLOURS
from streamer.errors import HeadraceError

ENDINGS = (".yaml", ".yml")
ASKED_AT_ONCE = 16


class Row(NamedTuple):
    """`mistakes`: of the file, one a line; without any it is valid. `state`: of the running streamer, `not running`
    where none answers, None of a file that does not say where to ask. `lag_seconds`: None where it is not known."""

    file: str
    pipeline: str | None
    mistakes: list[str]
    state: str | None
    waiting_for: str | None
    lag_seconds: float | None

    def as_dict(self) -> dict[str, Any]:
        return {**self._asdict(), "valid": not self.mistakes}


def overview(folder: Path) -> list[Row]:
    """In the order of the files' names. Raises OSError."""
    files = sorted(file for file in folder.iterdir() if file.suffix in ENDINGS and file.is_file())
    with ThreadPoolExecutor(ASKED_AT_ONCE) as pool:
        rows = list(pool.map(_row, files))
    named: dict[str | None, list[str]] = {}
    for row in rows:
        named.setdefault(row.pipeline, []).append(row.file)
    return [row._replace(mistakes=[*row.mistakes, *_shared(row, named[row.pipeline])]) for row in rows]


def _shared(row: Row, files: Sequence[str]) -> list[str]:
    """That other files have the pipeline's name, by which topics, lake and place in the binlog are one."""
    others = [file for file in files if file != row.file]
    if row.pipeline is None or not others:
        return []
    message = f"{row.pipeline} is the name of {' and '.join(others)}, too: they would write the same topics and tables"
    line = line_of(Path(row.file), None, "name")
    return _told(Path(row.file), [Problem(line, "name", message, "", "give each file a name of its own")])


def _told(path: Path, problems: list[Problem]) -> list[str]:
    return _lines(PipelineFileError(path, problems))


def _lines(error: PipelineFileError) -> list[str]:
    """Of a mistake of the file itself its one line has the cause."""
    first, *others = str(error).splitlines()
    return [f"  {first}", *others] if error.of_file else others


def _row(file: Path) -> Row:
    try:
        settings = pipeline_file.load(file, secrets=False)
    except PipelineFileError as error:
        return Row(str(file), None, _lines(error), None, None, None)
    try:
        found = ask(settings)
    except HeadraceError:
        return Row(str(file), settings.name, [], "not running", None, None)
    return Row(str(file), settings.name, [], found["state"], found["waiting_for"], found.get("lag_seconds"))


def show(out: Console, rows: Sequence[Row]) -> None:
    table = Table("pipeline", "state", "lag", "file", box=None, pad_edge=False)
    for row in rows:
        if row.mistakes:
            table.add_row("", "[red]invalid[/]", "", f"{escape(row.file)}\n{escape(chr(10).join(row.mistakes))}")
            continue
        state = row.state or ""
        told = f"[{COLOURS.get(state, 'yellow')}]{state}[/]" + (
            f" for {escape(row.waiting_for)}" if row.waiting_for else ""
        )
        lag = "" if row.lag_seconds is None else f"{row.lag_seconds:.1f} s"
        table.add_row(row.pipeline, told, lag, escape(row.file))
    out.print(table)
