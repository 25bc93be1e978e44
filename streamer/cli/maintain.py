"""`headrace maintain`: becomes the Spark job, as whose process it goes on."""

from __future__ import annotations

from typing import Annotated

import typer

from contract.pipeline_maintenance import STEPS
from streamer.cli.console import File, explained, named
from streamer.cli.spark_driver import LOCAL, NEEDS, Master, Table, become

EXAMPLE = f"""Examples: [cyan]headrace maintain pipelines/flights.yaml[/],
[cyan]headrace maintain pipelines/flights.yaml --table nycflights.flights --step vacuum[/]{NEEDS}"""


def maintain(
    pipeline: File,
    table: Table = None,
    step: Annotated[list[str] | None, typer.Option(help=f"{', '.join(STEPS)}; all when left out")] = None,
    master: Master = LOCAL,
) -> None:
    """Look after the files of the pipeline's lake, as its maintenance DAG does.

    Many small files become few, and what nothing needs any more is removed, by the file's section maintenance. The
    lake's other jobs wait for one table at most. In a pipe the result is a line of JSON behind "headrace-result: ".
    """
    with explained():
        if unknown := sorted({*(step or ())} - {*STEPS}):
            told = f"{', '.join(unknown)} is no step: there are {', '.join(STEPS)}"
            raise typer.BadParameter(told, param_hint="--step")
        for name in table or ():
            named(name)
        # A table that the file has no longer may be in the lake all the same: the job knows.
        become("maintain", master, pipeline, {"tables": ",".join(table or ()), "steps": ",".join(step or ())})
