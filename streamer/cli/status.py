"""`headrace status`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from contract import pipeline as pipeline_file
from streamer.cli.console import File, explained, out

EXAMPLE = "Example: [cyan]headrace status pipelines/flights.yaml --json | jq .lag_seconds[/]"


def status(
    pipeline: File,
    as_json: Annotated[bool, typer.Option("--json", help="all of it as JSON")] = False,
) -> None:
    """Ask the running streamer how it stands. Exit status 1 when it does not run, or has failed."""
    from streamer.control.running import ask
    from streamer.control.tables import show_status

    with explained():
        found = ask(pipeline_file.load(pipeline, secrets=False))
    if as_json:
        out.print_json(json.dumps(found))
    else:
        show_status(out, found)
    if found["state"] in ("failed", "stopped"):
        raise typer.Exit(1)
