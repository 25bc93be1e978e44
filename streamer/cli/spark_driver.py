"""How a command becomes a Spark job, as whose process it goes on, and the options that such commands share.

What can be refused without Spark is refused before it starts, which takes seconds.
"""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from contract import job_options, no_lake, spark_process
from contract import pipeline as pipeline_file
from contract.java import java_missing, java_program
from streamer.cli.console import err, refuse_others
from streamer.errors import HeadraceError

LOCAL = "local[*]"
MASTER = re.compile(r"local(-cluster)?(\[[\d*, ]+\])?|spark://[^\s/]+:\d+|yarn|k8s://\S+")


def _master(text: str) -> str:
    """Raises typer.BadParameter for what Spark would take seconds to refuse, in Java's words."""
    if not MASTER.fullmatch(text):
        forms = f"{LOCAL} (or with a number of cores), spark://host:port, yarn or k8s://..."
        raise typer.BadParameter(f"{text!r} is no place where Spark runs: write {forms}")
    return text


Table = Annotated[list[str] | None, typer.Option(metavar="DB.TABLE", help="several by several --table; else all")]
Master = Annotated[str, typer.Option(callback=_master, help="where Spark runs, such as spark://host:7077")]
Compact = Annotated[
    bool, typer.Option("--compact", help="compact too, for who has no DAG or headrace compact --loop that does")
]
NEEDS = """

Needs: Java 17, the packages of requirements.txt, and the jars that [cyan]make spark-jars[/] fetches, for a lake on S3
[cyan]make spark-s3-jars[/] too; HEADRACE_SPARK_JARS names their folders where they are not in the checkout."""


class NoSparkError(HeadraceError):
    """The Spark jobs cannot be started from here."""

    kind = "no_spark"


def become(
    job: str, master: str, file: Path, options: Mapping[str, str], of: Iterable[str] | None = None,
    given_as: str = "--table",
) -> None:  # fmt: skip
    """Does not return. `options` of the job: empty ones are left out; `of`: the `db.table`s that it is to be of, which
    the command line has as `given_as`. Raises NoSparkError, PipelineFileError for a mistake in the file, as
    that it feeds no lake, typer.BadParameter for what is no table of it."""
    pipeline = pipeline_file.load(file)
    no_lake.refuse(pipeline)
    refuse_others(pipeline, of or (), given_as)
    on_s3 = pipeline.lake.bucket is not None
    try:
        command, variables = spark_process.driver(job, master, "--pipeline", str(file), on_s3=on_s3)
    except FileNotFoundError as error:
        raise NoSparkError("start", job, str(error), "") from None
    refuse_without_spark(job, command[0])
    try:
        given = job_options.given(options)
    except OSError as error:
        hint = "The keys go to the job in a file: make room in the folder for temporary files (TMPDIR)."
        raise NoSparkError("start", job, error.strerror or str(error), hint) from None
    err.print("starting Spark")  # it is silent for half a minute and more
    sys.stdout.flush()
    # The job lets them come once it can end well, which it cannot while Python reads its modules.
    signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        os.execve(command[0], [*command, *given.words], {**os.environ, **variables})
    except OSError as error:
        job_options.forget(given.files)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, (signal.SIGINT, signal.SIGTERM))
        hint = "Mend HEADRACE_SPARK_PYTHON, which names the Python of the Spark jobs."
        raise NoSparkError("start", command[0], error.strerror or str(error), hint) from None


@contextmanager
def told_before_spark(hint: str, more: str = "") -> Iterator[None]:
    """What the job would say of the command line itself, as a mistake of the command line. `hint`: which of it, where
    the mistake does not name options."""
    try:
        yield
    except ValueError as error:  # of contract/: whoever asks for the rows of a table writes them down there
        options = [f"--{name}" for name in getattr(error, "options", ())]
        raise typer.BadParameter(f"{error}{more}", param_hint=" / ".join(options) or hint) from None


def refuse_without_packages(job: str, python: str) -> None:
    """Of another Python than this one nobody knows here what it has."""
    if python == sys.executable and importlib.util.find_spec("pyspark") is None:
        hint = "Set HEADRACE_SPARK_PYTHON to a Python that has the packages of requirements.txt."
        raise NoSparkError("start", job, f"{python} has no pyspark", hint)


def refuse_without_spark(job: str, python: str) -> None:
    refuse_without_packages(job, python)
    if python == sys.executable and java_program() is None:
        raise NoSparkError("start", job, java_missing(), "Install a JDK 17, or let JAVA_HOME name the one you have.")


def yes(on: bool) -> str:
    """A flag as the jobs take one."""
    return "yes" if on else ""
