"""What every command shares: the two consoles, the pipeline file as an argument, and how an error is told."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, Literal

import structlog
import typer
from rich.console import Console

from contract import table_names
from contract.patterns import check
from contract.pipeline import Pipeline, PipelineFileError
from streamer.errors import HeadraceError

PLAIN_WIDTH = 10_000_000  # characters


class Piped(Console):
    """For a pipe: no line is broken, so that whoever searches the output finds whole names and paths, and none is
    filled up with blanks to the width of its longest neighbour."""

    def __init__(self, **given: Any) -> None:
        super().__init__(width=PLAIN_WIDTH, **given)

    def print(self, *objects: Any, **given: Any) -> None:
        with self.capture() as captured:
            super().print(*objects, **given)
        self.file.write("\n".join(line.rstrip() for line in captured.get().split("\n")))
        self.file.flush()


# Without emoji: `binlog.000001:100:` has the code of one.
out = Console(highlight=False, emoji=False) if sys.stdout.isatty() else Piped(highlight=False, emoji=False)
err = Console(stderr=True, highlight=False, soft_wrap=True, emoji=False)
File = Annotated[Path, typer.Argument(metavar="PIPELINE", help="the pipeline file, such as pipelines/flights.yaml")]
Log = Annotated[
    Literal["auto", "json", "console"], typer.Option(help="form of the log; auto: console on a terminal, else JSON")
]

Patterns = Annotated[
    list[str] | None, typer.Option(metavar="DB.TABLE", help="a pattern of tables; may be given again; else all")
]


def table_patterns(given: list[str] | None) -> tuple[str, ...]:
    """What the option --table was given. Raises typer.BadParameter."""
    for pattern in given or ():
        try:
            check(pattern, "db.table", "shop.* or shop.orders")
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--table") from None
    return tuple(given or ())


def refuse_others(pipeline: Pipeline, tables: Iterable[str], given_as: str = "--table") -> None:
    """Raises typer.BadParameter for a name that no table of the pipeline can have. `given_as`: the option's name, or
    the argument's."""
    for name in tables:
        if why := table_names.refused(pipeline, name):
            raise typer.BadParameter(why, param_hint=given_as)


def named(table: str, given_as: str = "--table") -> None:
    """Raises typer.BadParameter, as above."""
    if not all(table.partition(".")):
        raise typer.BadParameter(f"{table!r} is no table's name: write it as db.table", param_hint=given_as)


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
    except PipelineFileError as error:  # found after the file was read
        if for_people:
            raise
        _failed("pipeline_file", str(error), "Mend the file.", False)
        raise typer.Exit(2) from None
    except HeadraceError as error:
        if for_people:
            raise
        _failed(error.kind, error.what, error.hint, error.retryable)
        raise typer.Exit(1) from None


def _failed(kind: str, error: str, next_step: str, retryable: bool) -> None:
    facts = {"kind": kind, "error": error, "next_step": next_step, "retryable": retryable}
    structlog.get_logger("streamer").error("failed", **facts)
