"""`headrace sql`."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Sequence
from itertools import count
from typing import Annotated, Any, Literal

import typer
from rich.markup import escape
from rich.table import Table

from contract import pipeline as pipeline_file
from streamer.cli.console import File, err, explained, out
from streamer.errors import HeadraceError

EXAMPLE = "Example: [cyan]headrace sql pipelines/flights.yaml 'SELECT count(*) FROM flights'[/]"

OF_STATEMENT = re.compile(r"(Parser|Binder|Catalog) Error: ")
IN_LINE = {ord("\n"): "\\n", ord("\r"): "\\r", ord("\t"): "\\t"}


class LakeQueryError(HeadraceError):
    """There is no lake yet, it cannot be read, or not by this query."""

    kind = "lake"

    def __str__(self) -> str:
        """What DuckDB says of a statement ends in a mark below its wrong place, and is of no lake."""
        return self.cause if OF_STATEMENT.match(self.cause) else super().__str__()


def sql(
    pipeline: File,
    statement: Annotated[str, typer.Argument(metavar="SQL", help="one query, in DuckDB's SQL")],
    form: Annotated[
        Literal["table", "json", "csv"], typer.Option("--format", help="json: one object a line")
    ] = "table",
) -> None:
    """Ask the pipeline's lake, without Spark.

    Names: [bold]orders[/] (or shop.orders) is the table, [bold]orders_history[/] every version of its rows,
    [bold]orders_changes[/] what each transaction did, [bold]orders_as_of('2026-11-22 10:42:00+00')[/] the table at that
    time. The tables that the query names are read whole; the lake is in a folder of this machine or on S3. Where a
    table may not be what the source has, stderr says why.
    """
    with explained():
        settings = pipeline_file.load(pipeline, secrets="lake")
        try:
            from readers.errors import LakeReadError
            from readers.lake import query
        except ModuleNotFoundError as error:
            raise LakeQueryError(
                "reading the lake of", settings.name, f"Python has no package {error.name}",
                "Install Headrace with its extra sql, or run the command where the checkout is installed.",
            ) from None  # fmt: skip
        try:
            found = query(settings, statement)
            for doubt in found.doubts:
                err.print(f"note: {doubt}", markup=False)
            _SHOWN[form](found.columns, found.rows())
        except LakeReadError as error:
            raise LakeQueryError("reading the lake of", settings.name, str(error), "") from None


def _table(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    table = Table(*map(escape, names), box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*map(_cell, row))
    out.print(table)


def _cell(value: Any) -> str:
    """In one line; a NULL and an empty text do not look alike."""
    return "[dim]NULL[/]" if value is None else escape(_text(value).translate(IN_LINE))


def _text(value: Any) -> str:
    """Structs and lists as JSON."""
    return json.dumps(_keyed(value), ensure_ascii=False, default=_plain) if _nested(value) else _plain(value)


PLAIN_KEY = (str, int, float, bool, type(None))  # which JSON writes by itself


def _nested(value: Any) -> bool:
    return isinstance(value, dict | list | tuple)


def _keyed(value: Any) -> Any:
    """With keys as JSON has them: a MAP of DuckDB's may have any."""
    if isinstance(value, dict):
        return {key if isinstance(key, PLAIN_KEY) else _text(key): _keyed(one) for key, one in value.items()}
    return [*map(_keyed, value)] if _nested(value) else value


def _json(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    keys = _distinct(names)
    for row in rows:
        line = dict(zip(keys, map(_keyed, row), strict=True))
        out.file.write(json.dumps(line, ensure_ascii=False, default=_plain) + "\n")


def _distinct(names: Sequence[str]) -> list[str]:
    """Columns may share a name, keys of an object may not: numbered, as DuckDB's own clients do."""
    taken, made = {*names}, list[str]()
    for name in names:
        numbered = (f"{name}_{n}" for n in count(1))
        made.append(next(one for one in numbered if one not in taken) if name in made else name)
        taken.add(made[-1])
    return made


def _plain(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)


def _csv(names: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    writer = csv.writer(out.file, lineterminator="\n")
    writer.writerow(names)
    writer.writerows([None if value is None else _text(value) for value in row] for row in rows)


_SHOWN = {"table": _table, "json": _json, "csv": _csv}
