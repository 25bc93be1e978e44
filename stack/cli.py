"""`python -m stack up|status|down|logs`: the platform on one machine, without containers and without root."""

from __future__ import annotations

import logging
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from stack import paths
from stack.errors import StackError, tail
from stack.kafka import Kafka
from stack.mysql import MySQL
from stack.process import Server

app = typer.Typer(
    add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help="Headrace's local servers."
)
NAMES = ("mysql", "kafka")

Names = Annotated[list[str] | None, typer.Argument(help=f"servers: {', '.join(NAMES)}; none means all")]
Data = Annotated[Path | None, typer.Option("--data", help="folder of data and logs; .headrace of the checkout")]
MySQLPort = Annotated[int, typer.Option("--mysql-port", min=1, max=65535)]
KafkaPort = Annotated[int, typer.Option("--kafka-port", min=1, max=65534, help="the controller has the next one")]


@app.command()
def up(names: Names = None, data: Data = None, mysql_port: MySQLPort = 23306, kafka_port: KafkaPort = 29092) -> None:
    """Start servers and wait until they answer; what is up already is left as it is."""
    started: list[Server] = []
    servers = {"mysql": lambda home: MySQL(home, mysql_port), "kafka": lambda home: Kafka(home, kafka_port)}
    try:
        for name in chosen(names):
            server = servers[name]((data or paths.data()) / name)
            if server.start():
                started.append(server)
    except BaseException:
        for server in reversed(started):
            logging.getLogger("stack").info("%s: stopping again", server.name)
            server.stop()
        raise


@app.command()
def status(names: Names = None, data: Data = None) -> None:
    """Print what runs, where, and its log. Exit status 1 where something asked for does not run."""
    complete = True
    for name in chosen(names):
        server = Server((data or paths.data()) / name, 0)
        server.name = name
        running = server.running()
        complete = complete and running is not None
        state = f"up    port {running.port}, process {running.pid}" if running else "down"
        typer.echo(f"{name:9} {state}  log {server.log_path}")
    if not complete:
        raise typer.Exit(1)


@app.command()
def down(names: Names = None, data: Data = None) -> None:
    """Stop servers that `up` started; data and logs stay."""
    for name in reversed(chosen(names)):
        server = Server((data or paths.data()) / name, 0)
        server.name = name
        stopped = server.stop()
        typer.echo(f"{name:9} {'stopped' if stopped else 'was not up'}")


@app.command()
def logs(
    names: Names = None, data: Data = None, lines: Annotated[int, typer.Option("--lines", "-n", min=1)] = 30
) -> None:
    """Print the last lines of the servers' logs."""
    for name in chosen(names):
        path = (data or paths.data()) / name / f"{name}.log"
        typer.echo(f"{name}: {path}\n{tail(path, lines)}")


def chosen(names: list[str] | None) -> list[str]:
    """The servers asked for, in the order of starting. Raises StackError for a name that is none."""
    wrong = [name for name in names or [] if name not in NAMES]
    if wrong:
        raise StackError(f"there is no server {wrong[0]!r}", f"The servers are: {', '.join(NAMES)}.")
    return [name for name in NAMES if not names or name in names]


def interrupted(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def main() -> None:
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    logging.getLogger("stack").setLevel(logging.INFO)
    signal.signal(signal.SIGTERM, interrupted)
    try:
        app()
    except StackError as error:
        sys.exit(f"headrace stack: {error}")
