"""`python -m stack up|status|down|logs|mysql|fetch`: the platform on one machine, without containers or root."""

from __future__ import annotations

import logging
import os
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from stack import archive, mariadb, maven, mysql, mysql80
from stack.errors import StackError, tail
from stack.platform import NAMES, OTHERS, Platform, Ports
from stack.process import cancelled
from stack.spark_classes import spark_classes

app = typer.Typer(
    add_completion=False, no_args_is_help=True, pretty_exceptions_enable=False, help="Headrace's local servers."
)
DEFAULT = Ports()

Names = Annotated[
    list[str] | None, typer.Argument(help=f"{', '.join(NAMES)}, which none named means; {', '.join(OTHERS)}")
]
Data = Annotated[Path | None, typer.Option("--data", help="folder of data and logs; .headrace of the checkout")]
MySQLPort = Annotated[int, typer.Option("--mysql-port", min=1, max=65535)]
MySQL80Port = Annotated[int, typer.Option("--mysql80-port", min=1, max=65535)]
MariaDBPort = Annotated[int, typer.Option("--mariadb-port", min=1, max=65535)]
KafkaPort = Annotated[int, typer.Option("--kafka-port", min=1, max=65534, help="the controller has the next one")]
AirflowPort = Annotated[int, typer.Option("--airflow-port", min=1, max=65535)]
StreamerPort = Annotated[int, typer.Option("--streamer-port", min=1, max=65535)]
Pipeline = Annotated[Path | None, typer.Option("--pipeline", help="the streamer's file; pipelines/flights.yaml")]


@app.command()
def up(
    names: Names = None,
    data: Data = None,
    mysql_port: MySQLPort = DEFAULT.mysql,
    kafka_port: KafkaPort = DEFAULT.kafka,
    airflow_port: AirflowPort = DEFAULT.airflow,
    streamer_port: StreamerPort = DEFAULT.streamer,
    mysql80_port: MySQL80Port = DEFAULT.mysql80,
    mariadb_port: MariaDBPort = DEFAULT.mariadb,
    pipeline: Pipeline = None,
) -> None:
    """Start servers and wait until they answer. What is up already is left as it is; where it was started with other
    settings than these, that is an error that names them."""
    ports = Ports(mysql_port, kafka_port, airflow_port, streamer_port, mysql80_port, mariadb_port)
    Platform(data, ports, pipeline).up(names or ())


@app.command()
def status(names: Names = None, data: Data = None) -> None:
    """Print what runs, where, and its log. Exit status 1 where something asked for does not run."""
    complete = True
    for server in Platform(data).servers(names or ()):
        running = server.running()
        complete = complete and running is not None
        state = f"up    port {running.port}, process {running.pid}" if running else "down"
        typer.echo(f"{server.name:9} {state}  log {server.log_path}")
    if not complete:
        raise typer.Exit(1)


@app.command()
def down(names: Names = None, data: Data = None) -> None:
    """Stop servers that `up` started; data and logs stay."""
    platform = Platform(data)
    for server in reversed(platform.servers(names or ())):
        typer.echo(f"{server.name:9} {'stopped' if server.stop() else 'was not up'}")


@app.command()
def logs(
    names: Names = None, data: Data = None, lines: Annotated[int, typer.Option("--lines", "-n", min=1)] = 30
) -> None:
    """Print the last lines of the servers' logs."""
    for server in Platform(data).servers(names or ()):
        typer.echo(f"{server.name}: {server.log_path}\n{tail(server.log_path, lines)}")


OTHERS_OPTIONS = {"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": []}


@app.command("mysql", context_settings=OTHERS_OPTIONS)
def client(
    arguments: Annotated[
        list[str] | None, typer.Argument(help="of the client, such as nycflights, or -e 'SELECT 1'")
    ] = None,
) -> None:
    """Become MySQL's own client, as root at the server that is up in .headrace; arguments are passed on."""
    command = mysql.asking(Platform().mysql)
    os.execvpe(command.words[0], [*command.words, *(arguments or ())], {**os.environ, **command.variables})


@app.command()
def fetch(
    spark: Annotated[bool, typer.Option("--spark", help="what the Spark jobs need, and nothing else")] = False,
    s3: Annotated[bool, typer.Option("--s3", help="the jars of a lake on S3, and nothing else")] = False,
) -> None:
    """Download and unpack every server and jar into the cache, and start nothing."""
    if not spark and not s3:
        _fetch_servers()
    if s3:
        typer.echo(maven.spark_s3_jars_folder())
    if spark or not s3:
        typer.echo(maven.spark_jars_folder())
        if classes := spark_classes():
            typer.echo(classes)


def _fetch_servers() -> None:
    if mysql.own_mysqld() is None:
        typer.echo(mysql.server_folder())
    if archive.published():
        typer.echo(mysql80.server_folder())
        typer.echo(mariadb.server_folder())
    typer.echo(maven.kafka_jars())


def interrupted(_signal: int, _frame: FrameType | None) -> None:
    """The first Ctrl-C or SIGTERM: what was started is stopped again, in which a second one may not break in."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    cancelled.set()
    raise KeyboardInterrupt


def main() -> None:
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    logging.getLogger("stack").setLevel(logging.INFO)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupted)
    try:
        app()
    except StackError as error:
        sys.exit(f"headrace stack: {error}")
    except KeyboardInterrupt:  # before the command took over, so nothing was started yet
        sys.exit(130)
