"""Each partition's greatest `_seq`, and latest commit, up to the end of each batch of step 1, in small files of the
lake."""

from __future__ import annotations

from typing import NamedTuple

from contract.names import MARKS
from spark.failpoints import reached
from spark.lake.lake import Lake

KEPT_MARKS = 20  # batches; only the last can be repeated
BEGINNING = -1  # the file before a query's first batch, whose name sorts before that one's


class Mark(NamedTuple):
    """`at`: the greatest `_seq`. `last`: the latest commit time, Unix ms; None where an older version did not say."""

    topic: str
    partition: int
    at: list[int]
    last: int | None = None


class Marks:
    """The marks of each batch: one small file a batch, with every partition's up to its end.

    Batches are numbered anew by a new checkpoint (another `query`); its files sort behind the old one's. The first
    has the marks that the query begins with. `begun`: whether it has any of its own.
    """

    def __init__(self, lake: Lake, query: str) -> None:
        self.lake = lake
        self.folder = lake.at(MARKS)
        names = self._names()
        own = [name for name in names if name.endswith(f"-{query}.json")]
        last = int(names[-1].split("-")[0]) if names else 0
        self.begun = bool(own)
        self.query, self.series = query, int(own[-1].split("-")[0]) if own else last + 1

    def _names(self) -> list[str]:
        return [name for name in self.lake.list(self.folder) if name.endswith(".json")]  # no half-written one

    def _name(self, batch: int) -> str:
        return f"{self.series:06d}-{batch:012d}-{self.query}.json"

    def before(self, batch: int) -> list[Mark]:
        names = [name for name in self._names() if name < self._name(batch)]
        known = (self.lake.read(f"{self.folder}/{names[-1]}") or []) if names else []
        return [Mark(*mark) for mark in known]

    def begin(self, marks: list[Mark]) -> None:
        self.lake.write(f"{self.folder}/{self._name(BEGINNING)}", marks)
        reached("marks begun")

    def write(self, batch: int, marks: list[Mark]) -> None:
        self.lake.write(f"{self.folder}/{self._name(batch)}", marks)
        reached("marks written")
        for name in self._names()[:-KEPT_MARKS]:
            self.lake.delete(f"{self.folder}/{name}")
            reached("old marks removed")
