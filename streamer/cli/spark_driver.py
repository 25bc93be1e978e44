"""How a command becomes a Spark job, as whose process it goes on."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path

from contract import pipeline as pipeline_file
from contract import spark_process
from streamer.errors import HeadraceError


class NoSparkError(HeadraceError):
    """The Spark jobs cannot be started from here."""

    kind = "no_spark"


def become(job: str, master: str, pipeline: Path, *arguments: str) -> None:
    """Does not return. Raises NoSparkError, and PipelineFileError for a mistake in the file, which is told at once, not
    after Spark's start."""
    pipeline_file.load(pipeline)
    try:
        command, variables = spark_process.driver(job, master, "--pipeline", str(pipeline), *arguments)
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
