"""`headrace compact`: becomes the Spark job, as whose process it goes on."""

from __future__ import annotations

from typing import Annotated

import typer

from streamer.cli.console import File, explained
from streamer.cli.spark_driver import become

EXAMPLE = """Examples: [cyan]headrace compact pipelines/flights.yaml[/],
[cyan]headrace compact pipelines/flights.yaml --loop >> flights-lake.log[/]"""


def compact(
    pipeline: File,
    loop: Annotated[bool, typer.Option("--loop", help="again and again, until SIGTERM or Ctrl-C")] = False,
    master: Annotated[str, typer.Option(help="where Spark runs, such as spark://host:7077")] = "local[*]",
) -> None:
    """Merge into the lake what Kafka has of the pipeline, as its compaction DAG does.

    With --loop one Spark session stays, and a round begins every compaction.every_seconds; a signal ends it behind the
    round that is under way. Each round prints its result, a line of JSON behind "headrace-result: ". The variables
    HEADRACE_SPARK_JARS and its like say what Spark is started with.
    """
    with explained():
        become("compact_loop" if loop else "compact", master, pipeline)
