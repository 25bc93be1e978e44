"""`headrace compact`: becomes the Spark job, as whose process it goes on."""

from __future__ import annotations

import importlib.util
import os
import sys
from typing import Annotated

import typer

from contract import pipeline as pipeline_file
from contract import spark_process
from streamer.cli.console import File, explained
from streamer.errors import HeadraceError

EXAMPLE = """Examples: [cyan]headrace compact pipelines/flights.yaml[/],
[cyan]headrace compact pipelines/flights.yaml --loop >> flights-lake.log[/]"""


class NoSparkError(HeadraceError):
    """The Spark jobs cannot be started from here."""

    kind = "no_spark"


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
        pipeline_file.load(pipeline, secrets=False)  # a mistake in it is told at once, not after Spark's start
        job = "compact_loop" if loop else "compact"
        try:
            command, variables = spark_process.driver(job, master, "--pipeline", str(pipeline))
        except FileNotFoundError as error:
            raise NoSparkError("start", job, str(error), "Or leave HEADRACE_SPARK_JARS out.") from None
        if command[0] == sys.executable and importlib.util.find_spec("pyspark") is None:
            hint = "Set HEADRACE_SPARK_PYTHON to a Python that has the packages of requirements.txt."
            raise NoSparkError("start", job, f"{command[0]} has no pyspark", hint)
        try:
            os.execve(command[0], command, {**os.environ, **variables})
        except OSError as error:
            hint = "Mend HEADRACE_SPARK_PYTHON, which names the Python of the Spark jobs."
            raise NoSparkError("start", command[0], error.strerror or str(error), hint) from None
