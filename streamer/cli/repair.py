"""`headrace repair`: becomes the Spark job, as whose process it goes on."""

from __future__ import annotations

import os
from getpass import getuser
from typing import Annotated

import typer

from streamer.cli.console import File, explained
from streamer.cli.spark_driver import become

EXAMPLE = """Examples: [cyan]headrace repair pipelines/flights.yaml[/],
[cyan]headrace repair shop.yaml --table shop.orders --from 1000 --to 1999[/]"""

Table = Annotated[list[str] | None, typer.Option(help="DB.TABLE; several by several --table")]
Keys = Annotated[str, typer.Option(help='of one table, a JSON list: [1, 2], or [["north", 1]] of several columns')]
Low = Annotated[str, typer.Option("--from", help="the first value of the key's first column, of one table")]
High = Annotated[str, typer.Option("--to", help="the last one; both are in")]
Master = Annotated[str, typer.Option(help="where Spark runs, such as spark://host:7077")]


def repair(
    pipeline: File,
    table: Table = None,
    keys: Keys = "",
    low: Low = "",
    high: High = "",
    master: Master = "local[*]",
) -> None:
    """Read from the source again what the last check of each table found to differ, or what is named.

    The rows are staged: the next compaction puts them in place of those in the lake. Then check again; the repair DAG
    does all three. The result is a line of JSON behind "headrace-result: ".
    """
    with explained():
        begin("repair", master, pipeline, {"tables": ",".join(table or ()), "keys": keys, "from": low, "to": high})


def begin(job: str, master: str, pipeline: File, given: dict[str, str]) -> None:
    """Does not return. `given`: the job's options; empty ones are left out."""
    try:
        user = getuser()
    except (KeyError, OSError):  # a number that no list of users has
        user = f"user {os.getuid()}"
    told = {**given, "by": user}
    become(job, master, pipeline, *(f"--{name}={value}" for name, value in told.items() if value))
