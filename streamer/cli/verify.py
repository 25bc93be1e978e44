"""`headrace verify`: becomes the Spark job, as whose process it goes on."""

from __future__ import annotations

from typing import Annotated

import typer

from streamer.cli.console import File, explained
from streamer.cli.spark_driver import LOCAL, NEEDS, Compact, Master, Table, become, yes

EXAMPLE = f"""Examples: [cyan]headrace verify pipelines/flights.yaml --compact[/],
[cyan]headrace verify shop.yaml --table shop.orders --whole[/]{NEEDS}"""


def verify(
    pipeline: File,
    table: Table = None,
    whole: Annotated[bool, typer.Option("--whole", help="all rows, also where the file asks for samples")] = False,
    anew: Annotated[
        bool, typer.Option("--anew", help="read all again, also what a check that did not end has read")
    ] = False,
    compact: Compact = False,
    master: Master = LOCAL,
) -> None:
    """Compare the lake with the source, row for row at one moment, as the quality DAG does, while changes go on.

    The streamer must run (headrace run). When the source is read, the check waits until a compaction has brought the
    lake as far, at most quality.wait_seconds: that of a DAG, of headrace compact --loop beside it, or with --compact of
    this command itself. Exit status 1 where a table differs. In a pipe the result is a line of JSON behind
    "headrace-result: ".
    """
    with explained():
        given = {"tables": ",".join(table or ()), "whole": yes(whole), "anew": yes(anew), "compact": yes(compact)}
        become("verify", master, pipeline, given, of=table)
