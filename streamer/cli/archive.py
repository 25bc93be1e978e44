"""`headrace archive`."""

from __future__ import annotations

from typing import Annotated

import typer

from contract import pipeline as pipeline_file
from streamer.cli.console import File, Log, explained, out, told
from streamer.control import logs

EXAMPLE = "Example: [cyan]headrace archive pipelines/flights.yaml --log json 2>> archive.log[/]"


def archive(
    pipeline: File,
    until_now: Annotated[bool, typer.Option("--until-now", help="end at the end of the server's last file")] = False,
    show: Annotated[bool, typer.Option("--status", help="only say how the archive stands")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="that as JSON")] = False,
    log: Log = "auto",
) -> None:
    """Copy the server's binlog files, byte by byte, as they grow, to where the section archive says.

    Until SIGTERM or Ctrl-C. --status has exit status 1 when nothing archives, or what does has failed.
    """
    from streamer.archive import command

    with explained():
        if show or as_json:
            found = command.status(pipeline_file.load(pipeline, secrets=False))
            command.show(out, found, as_json)
            if not found["runs"]:
                raise typer.Exit(1)
            return
        settings = pipeline_file.load(pipeline)
        for_people = logs.configure(log, "INFO", pipeline=settings.name)
        with told(for_people):
            command.archive(settings, until_now)
