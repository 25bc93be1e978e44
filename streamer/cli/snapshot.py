"""`headrace snapshot`: becomes the Spark job, as whose process it goes on."""

from __future__ import annotations

from typing import Annotated

import typer

from streamer.cli.console import File, explained
from streamer.cli.spark_driver import LOCAL, NEEDS, Compact, Master, Table, become, yes

EXAMPLE = f"""Examples: [cyan]headrace snapshot pipelines/flights.yaml --compact[/],
[cyan]headrace snapshot shop.yaml --table shop.orders[/]{NEEDS}"""


def snapshot(
    pipeline: File,
    table: Table = None,
    existing: Annotated[bool, typer.Option("--existing", help="of the tables those alone that the source has")] = False,
    compact: Compact = False,
    master: Master = LOCAL,
) -> None:
    """Read the rows of the pipeline's tables into its lake, as its snapshot DAG does, while changes go on.

    The streamer must run (headrace run). The rows are staged: the next compaction puts them in place, that of a DAG, of
    headrace compact, or with --compact of this command itself, which then ends when they are there. In a pipe the
    result is a line of JSON behind "headrace-result: ".
    """
    with explained():
        given = {"tables": ",".join(table or ()), "existing": yes(existing), "compact": yes(compact)}
        become("snapshot", master, pipeline, given, of=table)
