"""`headrace compact`: becomes the Spark job, as whose process it goes on."""

from __future__ import annotations

from typing import Annotated

import typer

from streamer.cli.console import File, explained
from streamer.cli.spark_driver import LOCAL, NEEDS, Master, become

EXAMPLE = f"""Examples: [cyan]headrace compact pipelines/flights.yaml[/],
[cyan]headrace compact pipelines/flights.yaml --loop >> flights-lake.log[/]{NEEDS}"""


def compact(
    pipeline: File,
    loop: Annotated[bool, typer.Option("--loop", help="again and again, until SIGTERM or Ctrl-C")] = False,
    master: Master = LOCAL,
) -> None:
    """Merge into the lake what Kafka has of the pipeline, as its compaction DAG does.

    With --loop one Spark session stays, and a round begins every compaction.every_seconds; a signal ends it behind the
    round that is under way. Each round tells its result: on a terminal in lines, else as a line of JSON behind
    "headrace-result: ".
    """
    with explained():
        become("compact_loop" if loop else "compact", master, pipeline, {})
