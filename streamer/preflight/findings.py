"""What a check of the server is given, and what it finds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from contract.gtid import GtidSet
from contract.pipeline import Pipeline
from streamer.flavors import flavor
from streamer.flavors.port import Ask, Flavor

Level = Literal["error", "warning"]


@dataclass(frozen=True)
class Finding:
    """`what`: what was seen and why it matters. `statement`: the SQL, or the step, that mends it; ends in a stop
    or a semicolon."""

    level: Level
    name: str
    what: str
    statement: str


@dataclass(frozen=True)
class Server:
    """What the checks look at. `start`: the transactions that the stream has; `since`: Unix seconds of the last one of
    them. `ask` runs a statement and gives its rows, or None where the user may not."""

    pipeline: Pipeline
    start: GtidSet | None
    since: float | None
    variables: Mapping[str, str]
    version: tuple[int, ...]
    ask: Ask

    @property
    def flavor(self) -> Flavor:
        return flavor(self.pipeline.source)
