"""`headrace check`."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from contract import pipeline as pipeline_file
from streamer.cli.console import File, explained, out

EXAMPLE = "Example: [cyan]headrace check pipelines/flights.yaml[/]"


def check(
    pipeline: File,
    as_json: Annotated[bool, typer.Option("--json", help="the findings as JSON")] = False,
) -> None:
    """Check the file, the server's settings and rights, the broker, the topics, and what the lake's jobs need of this
    machine; change nothing."""
    from streamer.control.tables import show_checks
    from streamer.kafka import broker
    from streamer.preflight.command import check as checks

    with explained():
        settings = pipeline_file.load(pipeline)
        if settings.has_kafka:
            broker.check(settings)
        results = checks(settings)
    if as_json:
        out.print_json(json.dumps([asdict(result) for result in results]))
    else:
        show_checks(out, results)
    if any(result.level == "error" for result in results):
        raise typer.Exit(1)
