"""`headrace crosscheck`."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from contract import pipeline as pipeline_file
from streamer.cli.console import File, explained, out

EXAMPLE = "Example: [cyan]headrace crosscheck pipelines/flights.yaml --last 500[/]"


def crosscheck(
    pipeline: File,
    last: Annotated[int, typer.Option(min=1, help="so many of the newest transactions")] = 1000,
    begin: Annotated[
        str | None, typer.Option("--from", metavar="FILE:POS", help="in place of --last: where the stretch begins")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="FILE:POS", help="where it ends; the present end where left out")
    ] = None,
    values: Annotated[bool, typer.Option(help="print the values that differ; they are your rows' data")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="the report as JSON")] = False,
) -> None:
    """Read a stretch of the server's binlog with mysql-replication too, and compare event by event.

    Reads only, under server ids of its own; a streamer may run meanwhile. Exit status 1 when a difference is left that
    is no known defect of mysql-replication.
    """
    from streamer.crosscheck import command

    with explained():
        report = command.crosscheck(pipeline_file.load(pipeline), last, begin, end)
    if as_json:
        out.print_json(json.dumps(command.facts(report, values)))
    else:
        command.show(out, report, values)
    if report.unknown:
        raise typer.Exit(1)
