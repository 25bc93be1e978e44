"""`headrace run`."""

from __future__ import annotations

import os
import signal
import sys
import threading
from typing import Annotated, Literal

import typer

from contract import pipeline as pipeline_file
from streamer.cli.console import File, Log, explained, told
from streamer.control import logs

EXAMPLE = """Examples: [cyan]headrace run pipelines/flights.yaml --log json 2>> flights.log[/],
[cyan]headrace run --oneshot pipelines/flights.yaml && echo "all delivered"[/]"""
Level = Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR"], typer.Option(case_sensitive=False)]


def run(
    pipeline: File,
    oneshot: Annotated[
        bool, typer.Option("--oneshot", help="up to the server's present position, then the end")
    ] = False,
    log: Log = "auto",
    log_level: Level = "INFO",
    supervised: Annotated[bool, typer.Option("--supervised", hidden=True)] = False,
) -> None:
    """Stream the pipeline until SIGTERM or Ctrl-C; both flush what was read before it ends."""
    from streamer.control.api import application
    from streamer.control.http import serving, take_port, token_of
    from streamer.run import Runner

    with explained():
        settings = pipeline_file.load(pipeline)
        if oneshot and settings.streamer.high_availability:
            raise typer.BadParameter("--oneshot would stand by: the file says streamer.high_availability: true")
        for_people = logs.configure(log, log_level, pipeline=settings.name)
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        if supervised:
            threading.Thread(target=_end_with_parent, args=(stop,), name="supervisor", daemon=True).start()
        http = settings.streamer.http
        with told(for_people):
            runner = Runner(settings, stop, oneshot)
            app = application(runner.report, token_of(http))
            with serving(app, take_port(http.host, http.port)):
                runner.run()


def _end_with_parent(stop: threading.Event) -> None:
    """The supervisor holds the other end of standard input, and writes nothing. Read past the buffer of `sys.stdin`,
    whose lock would be taken when the interpreter ends."""
    while os.read(sys.stdin.fileno(), 1):
        pass
    stop.set()
