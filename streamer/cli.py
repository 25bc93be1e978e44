"""The command `headrace`.

Exit status: 0 done; 1 a pipeline, server or topic is not as it must be; 2 the pipeline file or the command line is
wrong. An error is one paragraph on standard error, never a traceback.
"""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Literal

import structlog
import typer
from rich.console import Console

from contract import pipeline as pipeline_file
from contract.pipeline import PipelineFileError
from streamer import VERSION
from streamer.control import logs
from streamer.errors import HeadraceError

app = typer.Typer(
    name="headrace",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Carries a MySQL server's changes from its binlog to Kafka, and tells how it stands.",
    epilog="Examples: [cyan]headrace check pipelines/flights.yaml[/], [cyan]headrace run pipelines/flights.yaml[/]",
)
PLAIN_WIDTH = 1000  # characters
# In a pipe no line is broken: whoever searches the output finds whole names and paths.
out = Console(highlight=False, width=None if sys.stdout.isatty() else PLAIN_WIDTH)
err = Console(stderr=True, highlight=False, soft_wrap=True)
File = Annotated[Path, typer.Argument(metavar="PIPELINE", help="the pipeline file, such as pipelines/flights.yaml")]


@contextmanager
def explained() -> Iterator[None]:
    """Turns the product's own errors into one message and an exit status."""
    try:
        yield
    except PipelineFileError as error:
        err.print(str(error), markup=False)
        raise typer.Exit(2) from None
    except HeadraceError as error:
        err.print(f"error ({error.kind}): {error}", markup=False)
        raise typer.Exit(1) from None


@contextmanager
def told(for_people: bool) -> Iterator[None]:
    """A log for machines gets the error as a line of its own form, and nothing else."""
    try:
        yield
    except HeadraceError as error:
        if for_people:
            raise
        structlog.get_logger("streamer").error("failed", kind=error.kind, error=str(error), next_step=error.hint)
        raise typer.Exit(1) from None


@app.callback(invoke_without_command=True)
def main(version: Annotated[bool, typer.Option("--version", help="print the version and end")] = False) -> None:
    if version:
        out.print(VERSION)
        raise typer.Exit


@app.command(epilog="Example: [cyan]headrace run pipelines/flights.yaml --log json 2>> flights.log[/]")
def run(
    pipeline: File,
    log: Annotated[
        Literal["auto", "json", "console"], typer.Option(help="form of the log; auto: console on a terminal, else JSON")
    ] = "auto",
    log_level: Annotated[Literal["DEBUG", "INFO", "WARNING", "ERROR"], typer.Option()] = "INFO",
) -> None:
    """Stream the pipeline until SIGTERM or Ctrl-C; both flush what was read before it ends."""
    from streamer.control.api import serving, take_port
    from streamer.run import Runner

    with explained():
        settings = pipeline_file.load(pipeline)
        for_people = logs.configure(log, log_level, pipeline=settings.name)
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        runner = Runner(settings, stop)
        with told(for_people), serving(runner.report, take_port(settings.streamer.http)):
            runner.run()


@app.command(epilog="Example: [cyan]headrace check pipelines/flights.yaml[/]")
def check(pipeline: File) -> None:
    """Check the file, the server's settings and rights, the broker and the topics; change nothing."""
    from streamer.control.tables import show_checks
    from streamer.preflight.command import check as checks

    with explained():
        results = checks(pipeline_file.load(pipeline))
    show_checks(out, results)
    if any(result.level == "error" for result in results):
        raise typer.Exit(1)


@app.command(epilog="Example: [cyan]headrace topics pipelines/flights.yaml[/]")
def topics(
    pipeline: File,
    as_json: Annotated[bool, typer.Option("--json", help="the report as JSON")] = False,
) -> None:
    """Make the pipeline's missing topics; report what differs of the others. Never alters a topic."""
    from streamer.control.tables import show_topics
    from streamer.kafka.topics import provision

    with explained():
        done = provision(pipeline_file.load(pipeline))
    if as_json:
        out.print_json(json.dumps({"created": done.created, "as_wanted": done.as_wanted, "differing": done.differing}))
    else:
        show_topics(out, done)


@app.command(epilog="Example: [cyan]headrace status pipelines/flights.yaml --json | jq .lag_seconds[/]")
def status(
    pipeline: File,
    as_json: Annotated[bool, typer.Option("--json", help="all of it as JSON")] = False,
) -> None:
    """Ask the running streamer how it stands. Exit status 1 when it does not run, or has failed."""
    from streamer.control.running import ask
    from streamer.control.tables import show_status

    with explained():
        found = ask(pipeline_file.load(pipeline, secrets=False))
    if as_json:
        out.print_json(json.dumps(found))
    else:
        show_status(out, found)
    if found["state"] in ("failed", "stopped"):
        raise typer.Exit(1)


@app.command(epilog="Example: [cyan]headrace archive pipelines/flights.yaml --log json 2>> archive.log[/]")
def archive(
    pipeline: File,
    until_now: Annotated[bool, typer.Option("--until-now", help="end at the end of the server's last file")] = False,
    show: Annotated[bool, typer.Option("--status", help="only say how the archive stands")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="that as JSON")] = False,
    log: Annotated[
        Literal["auto", "json", "console"], typer.Option(help="form of the log; auto: console on a terminal, else JSON")
    ] = "auto",
) -> None:
    """Copy the server's binlog files, byte by byte, as they grow, to where the section archive says.

    Until SIGTERM or Ctrl-C. --status has exit status 1 when nothing archives, or what does has failed.
    """
    from streamer.archive import command

    with explained():
        if show or as_json:
            found = command.status(pipeline_file.load(pipeline, secrets=False))
            command.show(out, found, as_json)
            if not found["runs"]:
                raise typer.Exit(1)
            return
        settings = pipeline_file.load(pipeline)
        for_people = logs.configure(log, "INFO", pipeline=settings.name)
        with told(for_people):
            command.archive(settings, until_now)


@app.command(epilog="Example: [cyan]headrace crosscheck pipelines/flights.yaml --last 500[/]")
def crosscheck(
    pipeline: File,
    last: Annotated[int, typer.Option(min=1, help="so many of the newest transactions")] = 1000,
    begin: Annotated[
        str | None, typer.Option("--from", metavar="FILE:POS", help="in place of --last: where the stretch begins")
    ] = None,
    end: Annotated[
        str | None, typer.Option("--to", metavar="FILE:POS", help="where it ends; the present end where left out")
    ] = None,
    values: Annotated[bool, typer.Option(help="print the values that differ; they are your rows' data")] = False,
) -> None:
    """Read a stretch of the server's binlog with mysql-replication too, and compare event by event.

    Reads only, under server ids of its own; a streamer may run meanwhile. Exit status 1 when a difference is left that
    is no known defect of mysql-replication.
    """
    from streamer.crosscheck import command

    with explained():
        report = command.crosscheck(pipeline_file.load(pipeline), last, begin, end)
    command.show(out, report, values)
    if report.unknown:
        raise typer.Exit(1)


@app.command(epilog="Example: [cyan]headrace decoder pipelines/flights.yaml nycflights.flights[/]")
def decoder(
    pipeline: File,
    table: Annotated[str, typer.Argument(metavar="DB.TABLE", help="a table of which something was streamed")],
    version: Annotated[int | None, typer.Option(help="of its schema; the newest where left out")] = None,
) -> None:
    """Print the Python that decodes the table's rows, as it is generated from its schema."""
    from streamer import show_decoder

    with explained():
        found = show_decoder.source(show_decoder.find(pipeline_file.load(pipeline), table, version))
    out.print(found, markup=False, soft_wrap=True, end="")


if __name__ == "__main__":
    app()
