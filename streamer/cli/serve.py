"""`headrace serve`."""

from __future__ import annotations

import signal
import threading
from pathlib import Path
from typing import Annotated

import typer

from streamer.cli.console import Log, explained
from streamer.cli.run import Level
from streamer.control import logs

EXAMPLE = """Examples: [cyan]headrace serve pipelines/[/],
[cyan]HEADRACE_API_OPERATE_TOKENS_FILE=/run/secrets/headrace headrace serve pipelines/ --host 0.0.0.0[/]"""
PORT = "Another supervisor may run there; stop it, or give --port."


def serve(
    places: Annotated[list[Path], typer.Argument(metavar="PLACE...", help="folders of pipeline files, or files")],
    host: Annotated[str, typer.Option(help="address of the REST API and the page")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535)] = 8180,
    state: Annotated[
        Path | None, typer.Option(help="file that keeps what is paused or stopped; beside the files where left out")
    ] = None,
    allow_code: Annotated[
        bool,
        typer.Option("--allow-code", help="let the API name classes and functions that no file names yet"),
    ] = False,
    log: Log = "auto",
    log_level: Level = "INFO",
) -> None:
    """Run every pipeline of a folder, each in a process of its own, with a REST API and a page over all.

    A pipeline that crashes is restarted, and leaves the others alone. Until SIGTERM or Ctrl-C; both let every pipeline
    deliver what it has read.
    """
    from streamer.control.http import serving, take_port
    from streamer.supervisor import tokens
    from streamer.supervisor.api import application
    from streamer.supervisor.folder import Folder
    from streamer.supervisor.output import Output
    from streamer.supervisor.supervisor import Supervisor
    from streamer.supervisor.wanted import WantedStates

    with explained():
        known = tokens.from_environment()
        tokens.refuse_open(host, known)
        folder = Folder(places, (host, port), allow_code)
        states = WantedStates(state or folder.state_file)
        listener = take_port(host, port, PORT)
        for_people = logs.configure(log, log_level)
        supervisor = Supervisor(folder, states, log_level, Output(for_people))
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        with serving(application(supervisor, known), listener):
            supervisor.run(stop)
