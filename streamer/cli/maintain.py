"""`headrace maintain`: becomes the Spark job, as whose process it goes on."""

from __future__ import annotations

from typing import Annotated

import typer

from contract.pipeline_maintenance import STEPS
from streamer.cli.console import File, explained
from streamer.cli.spark_driver import become

EXAMPLE = """Examples: [cyan]headrace maintain pipelines/flights.yaml[/],
[cyan]headrace maintain pipelines/flights.yaml --table nycflights.flights --step vacuum[/]"""


def maintain(
    pipeline: File,
    table: Annotated[list[str] | None, typer.Option(help="DB.TABLE; several by several --table")] = None,
    step: Annotated[list[str] | None, typer.Option(help=f"{', '.join(STEPS)}; all when left out")] = None,
    master: Annotated[str, typer.Option(help="where Spark runs, such as spark://host:7077")] = "local[*]",
) -> None:
    """Look after the files of the pipeline's lake, as its maintenance DAG does.

    Many small files become few, and what nothing needs any more is removed, by the file's section maintenance. The
    lake's other jobs wait for one table at most. The result is a line of JSON behind "headrace-result: ".
    """
    with explained():
        given = {"tables": table, "steps": step}
        become("maintain", master, pipeline, *(f"--{name}={','.join(one)}" for name, one in given.items() if one))
