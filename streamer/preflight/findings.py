"""What a check of the server is given, and what it finds."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from contract.gtid import GtidSet
from contract.pipeline import Pipeline, Tables
from streamer.flavors import flavor
from streamer.flavors.port import Ask, Flavor

Level = Literal["error", "warning", "ok"]


@dataclass(frozen=True)
class Finding:
    """`level`: `ok` of what the pipeline file allows by name. `what`: what was seen and why it matters. `statement`:
    the SQL, or the step, that mends it; ends in a stop or a semicolon. `stops`: no row of the table can be told: a
    stream that follows it already goes on up to the first one, and ends there."""

    level: Level
    name: str
    what: str
    statement: str
    stops: bool = False


@dataclass(frozen=True)
class Result:
    """A line of `headrace check`. `next_step`: what to do, empty when all is well."""

    level: Level
    subject: str
    text: str
    next_step: str = ""


@dataclass(frozen=True)
class Server:
    """What the checks look at. `start`: the transactions that the stream has; `since`: Unix seconds of the last one of
    them. `ask` runs a statement and gives its rows, or None where the user may not. `followed`: the tables of a stream
    that runs, or goes on: what is wrong with one of them is no reason not to go on with the others; rows that cannot be
    told stop it when they come."""

    pipeline: Pipeline
    start: GtidSet | None
    since: float | None
    variables: Mapping[str, str]
    version: tuple[int, ...]
    ask: Ask
    followed: Tables | None = None

    @property
    def flavor(self) -> Flavor:
        return flavor(self.pipeline.source)

    def levels(self, rows: Iterable[tuple[Any, ...]] | None) -> Iterator[tuple[Level, list[tuple[Any, ...]]]]:
        """`rows`: each begins with database and table. Those of the pipeline's tables, errors and warnings apart."""
        ours = [row for row in rows or () if self.pipeline.tables.match(row[0], row[1])]
        old = [row for row in ours if self.followed is not None and self.followed.match(row[0], row[1])]
        new = [row for row in ours if row not in old]
        if new:
            yield "error", new
        if old:
            yield "warning", old


def excluding(tables: list[str]) -> str:
    """What takes them out of the pipeline."""
    return f"tables.exclude: [{', '.join(map(json.dumps, tables))}] in the pipeline file."
