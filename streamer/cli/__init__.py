"""The command `headrace`: a module for each command, and `console` for what they share.

Exit status: 0 done; 1 a pipeline, server or topic is not as it must be; 2 the pipeline file or the command line is
wrong. An error is one paragraph on standard error, never a traceback.
"""

from __future__ import annotations

from inspect import cleandoc
from typing import Annotated

import typer

from streamer import VERSION
from streamer.cli import (
    archive,
    backfill,
    check,
    compact,
    crosscheck,
    decode,
    decoder,
    erase,
    maintain,
    mend,
    pipelines,
    repair,
    run,
    seek,
    serve,
    snapshot,
    sql,
    status,
    tail,
    topics,
    verify,
)
from streamer.cli.console import out

app = typer.Typer(
    name="headrace",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    help="Carries a MySQL or MariaDB server's changes through Kafka into a lake, and proves that it equals the server.",
    epilog="Examples: [cyan]headrace check pipelines/flights.yaml[/], [cyan]headrace run pipelines/flights.yaml[/]",
)


@app.callback(invoke_without_command=True)
def main(version: Annotated[bool, typer.Option("--version", help="print the version and end")] = False) -> None:
    if version:
        out.print(VERSION)
        raise typer.Exit


def _flowing(text: str) -> str:
    """Its paragraphs as lines of any length: a terminal breaks them where it is that wide."""
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in cleandoc(text).split("\n\n"))


# in the order of `headrace --help`
for module in (
    run, serve, check, seek, topics, status, tail, sql, pipelines, archive, snapshot, compact, verify, maintain, repair,
    backfill, erase, mend, crosscheck, decoder, decode,
):  # fmt: skip
    command = getattr(module, module.__name__.rpartition(".")[2])
    app.command(help=_flowing(command.__doc__), epilog=_flowing(module.EXAMPLE))(command)
