"""The command `headrace`: a module for each command, and `console` for what they share.

Exit status: 0 done; 1 a pipeline, server or topic is not as it must be; 2 the pipeline file or the command line is
wrong. An error is one paragraph on standard error, never a traceback.
"""

from __future__ import annotations

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
    help="Carries a MySQL server's changes from its binlog to Kafka, and tells how it stands.",
    epilog="Examples: [cyan]headrace check pipelines/flights.yaml[/], [cyan]headrace run pipelines/flights.yaml[/]",
)


@app.callback(invoke_without_command=True)
def main(version: Annotated[bool, typer.Option("--version", help="print the version and end")] = False) -> None:
    if version:
        out.print(VERSION)
        raise typer.Exit


# in the order of `headrace --help`
app.command(epilog=run.EXAMPLE)(run.run)
app.command(epilog=serve.EXAMPLE)(serve.serve)
app.command(epilog=check.EXAMPLE)(check.check)
app.command(epilog=seek.EXAMPLE)(seek.seek)
app.command(epilog=topics.EXAMPLE)(topics.topics)
app.command(epilog=status.EXAMPLE)(status.status)
app.command(epilog=tail.EXAMPLE)(tail.tail)
app.command(epilog=sql.EXAMPLE)(sql.sql)
app.command(epilog=pipelines.EXAMPLE)(pipelines.pipelines)
app.command(epilog=archive.EXAMPLE)(archive.archive)
app.command(epilog=snapshot.EXAMPLE)(snapshot.snapshot)
app.command(epilog=compact.EXAMPLE)(compact.compact)
app.command(epilog=verify.EXAMPLE)(verify.verify)
app.command(epilog=maintain.EXAMPLE)(maintain.maintain)
app.command(epilog=repair.EXAMPLE)(repair.repair)
app.command(epilog=backfill.EXAMPLE)(backfill.backfill)
app.command(epilog=erase.EXAMPLE)(erase.erase)
app.command(epilog=mend.EXAMPLE)(mend.mend)
app.command(epilog=crosscheck.EXAMPLE)(crosscheck.crosscheck)
app.command(epilog=decoder.EXAMPLE)(decoder.decoder)
app.command(epilog=decode.EXAMPLE)(decode.decode)
