"""`headrace decoder`."""

from __future__ import annotations

from typing import Annotated

import typer

from contract import pipeline as pipeline_file
from streamer.cli.console import File, explained, out

EXAMPLE = "Example: [cyan]headrace decoder pipelines/flights.yaml nycflights.flights[/]"


def decoder(
    pipeline: File,
    table: Annotated[str, typer.Argument(metavar="DB.TABLE", help="a table of which something was streamed")],
    version: Annotated[int | None, typer.Option(help="of its schema; the newest where left out")] = None,
) -> None:
    """Print the Python that decodes the table's rows, as it is generated from its schema."""
    from streamer import show_decoder

    with explained():
        found = show_decoder.printed(pipeline_file.load(pipeline), table, version)
    out.print(found, markup=False, soft_wrap=True, end="")
