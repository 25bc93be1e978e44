"""`headrace status`."""

from __future__ import annotations

import json
import time
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.live import Live
from rich.text import Text

from contract import pipeline as pipeline_file
from contract.pipeline import Pipeline
from streamer.cli.console import File, explained, out

EXAMPLE = "Example: [cyan]headrace status pipelines/flights.yaml --json | jq .lag_seconds[/]"
ENDED = ("failed", "stopped")


def status(
    pipeline: File,
    once: Annotated[bool, typer.Option("--once", help="only as it stands now; so it is in a pipe")] = False,
    every: Annotated[float, typer.Option(min=0.1, metavar="SECONDS", help="how often it is asked")] = 1.0,
    as_json: Annotated[bool, typer.Option("--json", help="all of it as JSON, once")] = False,
) -> None:
    """Show how the running streamer stands, anew each second on a terminal, until Ctrl-C.

    Asked once, it has exit status 1 when the streamer does not run, or has failed.
    """
    with explained():
        settings = pipeline_file.load(pipeline, secrets=False)
        if out.is_terminal and not once and not as_json:
            _live(settings, every)
        else:
            _once(settings, as_json)


def _once(settings: Pipeline, as_json: bool) -> None:
    from streamer.control.running import ask
    from streamer.control.tables import show_status

    found = ask(settings)
    if as_json:
        out.print_json(json.dumps(found))
    else:
        show_status(out, found)
    if found["state"] in ENDED:
        raise typer.Exit(1)


def _live(settings: Pipeline, every: float) -> None:
    with Live(console=out, auto_refresh=False, vertical_overflow="visible") as live:
        try:
            while True:
                live.update(_seen(settings), refresh=True)
                time.sleep(every)
        except KeyboardInterrupt:
            return


def _seen(settings: Pipeline) -> RenderableType:
    """One that does not run, or not yet, is no end of looking."""
    from streamer.control.running import ask
    from streamer.control.tables import status_view
    from streamer.delivery_errors import NotRunningError

    try:
        found: dict[str, Any] = ask(settings)
    except NotRunningError as error:
        return Text(str(error), "red")
    return status_view(found)
