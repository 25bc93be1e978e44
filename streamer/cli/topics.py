"""`headrace topics`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from contract import pipeline as pipeline_file
from streamer.cli.console import File, explained, out

EXAMPLE = "Example: [cyan]headrace topics pipelines/flights.yaml[/]"


def topics(
    pipeline: File,
    as_json: Annotated[bool, typer.Option("--json", help="the report as JSON")] = False,
) -> None:
    """Make the pipeline's missing topics; report what differs of the others. Never alters a topic."""
    from streamer.control.tables import show_topics
    from streamer.kafka.topics import provision

    with explained():
        done = provision(pipeline_file.load(pipeline))
    if as_json:
        out.print_json(json.dumps({"created": done.created, "as_wanted": done.as_wanted, "differing": done.differing}))
    else:
        show_topics(out, done)
