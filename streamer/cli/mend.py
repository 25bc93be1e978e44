"""`headrace mend`: becomes `python -m spark.kafka.mend`, which reads the records as the lake's jobs do."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from contract import pipeline as pipeline_file
from contract import spark_process
from streamer.cli.console import File, explained
from streamer.cli.spark_driver import refuse_without_packages

EXAMPLE = "Example: [cyan]headrace mend pipelines/flights.yaml flights.schemas 0 17[/], as a job's error spells it"


def mend(
    pipeline: File,
    topic: Annotated[str, typer.Argument(help="the pipeline's commit log, or its topic of schemas or of DDL")],
    partition: Annotated[int, typer.Argument(min=0, help="the topic's, where the record is")],
    offset: Annotated[int, typer.Argument(min=0, help="the record's there")],
) -> None:
    """Take back a record of the pipeline's own topics that nobody can read, which stops the lake's jobs.

    Behind it comes what its key had before. In the topic of DDL it is removed with those before it instead, and each
    table counts as not snapshotted. A record that can be read is never touched.
    """
    with explained():
        pipeline_file.load(pipeline)
        python = spark_process.spark_python()
        refuse_without_packages("mend", python)
        command = [python, "-m", "spark.kafka.mend", str(pipeline), topic, str(partition), str(offset)]
        os.execve(python, command, {**os.environ, **spark_process.spark_environment(local=True)})
