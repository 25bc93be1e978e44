"""`headrace check`."""

from __future__ import annotations

import typer

from contract import pipeline as pipeline_file
from streamer.cli.console import File, explained, out

EXAMPLE = "Example: [cyan]headrace check pipelines/flights.yaml[/]"


def check(pipeline: File) -> None:
    """Check the file, the server's settings and rights, the broker and the topics; change nothing."""
    from streamer.control.tables import show_checks
    from streamer.preflight.command import check as checks

    with explained():
        results = checks(pipeline_file.load(pipeline))
    show_checks(out, results)
    if any(result.level == "error" for result in results):
        raise typer.Exit(1)
