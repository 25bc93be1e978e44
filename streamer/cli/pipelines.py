"""`headrace pipelines`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from streamer.cli.console import out

EXAMPLE = "Example: [cyan]headrace pipelines pipelines --json | jq '.[] | select(.valid | not)'[/]"


def pipelines(
    folder: Annotated[
        Path, typer.Argument(metavar="FOLDER", exists=True, file_okay=False, help="of pipeline files, *.yaml")
    ] = Path("pipelines"),
    as_json: Annotated[bool, typer.Option("--json", help="the list as JSON")] = False,
) -> None:
    """List a folder's pipeline files: whether each is valid, and how its streamer stands.

    Exit status 1 when a file is not valid.
    """
    from streamer.control.overview import overview, show

    rows = overview(folder)
    if as_json:
        out.print_json(json.dumps([row.as_dict() for row in rows]))
    else:
        show(out, rows)
    if any(row.mistakes for row in rows):
        raise typer.Exit(1)
