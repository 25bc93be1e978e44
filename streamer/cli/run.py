"""`headrace run`."""

from __future__ import annotations

import signal
import threading
from typing import Annotated, Literal

import typer

from contract import pipeline as pipeline_file
from streamer.cli.console import File, Log, explained, told
from streamer.control import logs

EXAMPLE = "Example: [cyan]headrace run pipelines/flights.yaml --log json 2>> flights.log[/]"


def run(
    pipeline: File,
    log: Log = "auto",
    log_level: Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR"], typer.Option()] = "INFO",
) -> None:
    """Stream the pipeline until SIGTERM or Ctrl-C; both flush what was read before it ends."""
    from streamer.control.api import serving, take_port
    from streamer.run import Runner

    with explained():
        settings = pipeline_file.load(pipeline)
        for_people = logs.configure(log, log_level, pipeline=settings.name)
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        runner = Runner(settings, stop)
        with told(for_people), serving(runner.report, take_port(settings.streamer.http)):
            runner.run()
