"""`headrace archive`: the run, with the signals that end it; and what is shown of one."""

from __future__ import annotations

import json
import signal
import threading
from typing import Any

from rich.console import Console
from rich.table import Table

from contract.pipeline import Pipeline
from streamer.archive import status as statuses
from streamer.archive.archiver import Archiver, section

ROWS = ("state", "server", "file", "position", "behind_seconds", "files_closed", "uploads_waiting", "target")


def archive(pipeline: Pipeline, until_now: bool) -> None:
    """Until SIGTERM or Ctrl-C, or the end. Raises HeadraceError."""
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    Archiver(pipeline, stop, until_now).run()


def status(pipeline: Pipeline) -> dict[str, Any]:
    """What the archive said last, and whether it `runs`. Raises NoArchiveError."""
    return statuses.read(pipeline, section(pipeline))


def show(out: Console, found: dict[str, Any], as_json: bool) -> None:
    if as_json:
        out.print_json(json.dumps(found))
        return
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_row("archive", found["pipeline"] + ("" if found["runs"] else ", which does not run"))
    for name in ROWS:
        if found[name] not in (None, ""):
            table.add_row(name.replace("_", " "), str(found[name]))
    if found["last_error"]:
        table.add_row("last error", found["last_error"]["message"])
    out.print(table)
