"""`python -m stack.demo`: the demo from the first server to the last line. `--down` stops everything again."""

from __future__ import annotations

import fcntl
import logging
import os
import re
import shutil
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer
from rich.console import Console

from contract.pipeline import NAME, Pipeline, PipelineFileError, load
from contract.pipeline_file import read_yaml
from stack import paths
from stack.demo import report
from stack.demo.journey import Journey
from stack.demo.memory import MemoryWatch
from stack.demo.screen import Screen
from stack.errors import StackError
from stack.platform import NAMES, Platform, Ports
from stack.process import cancelled

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)
DEFAULT = Ports()
PLAIN_WIDTH = 120
INTERRUPTED = "demo: interrupted. `make demo` goes on from here, `make demo-down` stops the servers."

Port = typer.Option(min=1, max=65535)


@app.command()
def demo(
    down: Annotated[bool, typer.Option("--down", help="stop the demo's servers; data stays")] = False,
    fresh: Annotated[bool, typer.Option("--fresh", help="stop the servers and delete the demo's data first")] = False,
    rate: Annotated[float, typer.Option(min=1, max=2000, help="changes a second of the replay")] = 200.0,
    data: Annotated[Path | None, typer.Option("--data", help="data and logs; .headrace of the checkout")] = None,
    mysql_port: Annotated[int, Port] = DEFAULT.mysql,
    kafka_port: Annotated[int, typer.Option(min=1, max=65534)] = DEFAULT.kafka,
    airflow_port: Annotated[int, Port] = DEFAULT.airflow,
    streamer_port: Annotated[int, Port] = DEFAULT.streamer,
) -> None:
    """The whole pipeline over a real data set: MySQL, Kafka, the streamer, Airflow, Spark, the lake, the proof."""
    console = Console(emoji=False) if sys.stdout.isatty() else Console(width=PLAIN_WIDTH, emoji=False)
    platform = Platform(data, Ports(mysql_port, kafka_port, airflow_port, streamer_port))
    try:
        if down or fresh:
            for server in platform.down():
                console.print(f"{server.name} stopped", highlight=False)
        if fresh:
            forget(platform)
        if not down:
            with alone(platform.data):
                good = journey(console, platform, rate)
            raise typer.Exit(0 if good else 1)
    except (StackError, PipelineFileError) as error:
        failed(console, str(error))
    except KeyboardInterrupt:
        console.print(INTERRUPTED, highlight=False)
        raise typer.Exit(130) from None


def failed(console: Console, why: str) -> None:
    """The last line is the verdict's first: what follows the first paragraph stands above it."""
    first, _, rest = why.partition("\n")
    if rest:
        console.print(why, markup=False, highlight=False, soft_wrap=True)
    console.print(f"demo: failed, {first}", markup=False, highlight=False, soft_wrap=True)
    raise typer.Exit(1)


def forget(platform: Platform) -> None:
    """Deletes what the demo's servers and its pipeline have written, and nothing else of the folder: a copy of the
    demo's file has its lake beside that one."""
    name = (read_yaml(platform.pipeline, {}).tree or {}).get("name")
    lakes = [platform.lake / str(name)] if re.fullmatch(NAME, str(name)) else []
    for folder in [*(platform.data / server for server in NAMES), *lakes]:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One demo at a time in a folder."""
    with (paths.writable_folder(folder, "--data") / ".demo.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise StackError(f"a demo runs already in {folder}", "Wait for its end, or stop it by Ctrl-C.") from None
        yield


def journey(console: Console, platform: Platform, rate: float) -> bool:
    began = time.monotonic()
    pipeline = described(platform)
    memory = MemoryWatch(lambda: [server.pid for server in platform.servers() if server.pid])
    memory.start()
    try:
        with Screen(console) as screen:
            way = Journey(platform, screen, pipeline, rate)
            way.run()
    except StackError as error:
        raise StackError(error.problem, f"{error.hint} {still_up(platform)}".strip(), error.log) from None
    finally:
        memory.stop()
    return report.show(console, way, memory.peak, time.monotonic() - began)


def still_up(platform: Platform) -> str:
    """What a failed demo leaves, and the way on; empty where nothing runs."""
    names = ", ".join(server.name for server in platform.servers() if server.running())
    return f"Still up: {names}. `make demo` goes on from here, `make demo-down` stops them." if names else ""


def described(platform: Platform) -> Pipeline:
    """The pipeline file, with the servers' settings in the environment that it asks."""
    os.environ.update(platform.settings())
    return load(platform.pipeline)


def interrupted(_signal: int, _frame: FrameType | None) -> None:
    cancelled.set()
    raise KeyboardInterrupt


def main() -> None:
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, interrupted)
    app()
