"""What the source said of a table in a check."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from pyspark.sql import DataFrame

from contract.pipeline_columns import Shown
from contract.schema import TableSchema
from spark.proof.boundary import Read
from spark.proof.checksum import Total, sum_of
from spark.proof.rewind import Position
from spark.proof.splits import Split


@dataclass(frozen=True)
class Answer:
    """What the source said of a table: of `chosen`, the chunks that were asked for, or of all. `resumed`: how many of
    the reads, the first ones, are of a check before this one."""

    shown: Shown
    split: Split
    reads: Sequence[Read]
    seconds: float = 0.0
    chosen: frozenset[int] | None = None
    resumed: int = 0

    @property
    def schema(self) -> TableSchema:
        return self.shown.schema

    @property
    def name(self) -> str:
        return f"{self.schema.db}.{self.schema.table}"

    @property
    def total(self) -> Total:
        return sum_of(read.total for read in self.reads)

    @property
    def high(self) -> Position:
        return max(read.high for read in self.reads)

    def older_than(self, place: Position) -> bool:
        """Whether some of it was read before the place."""
        return any(read.high <= place for read in self.reads)

    def resumed_before(self, place: Position) -> bool:
        """The same of what a check before this one read."""
        return any(read.high <= place for read in self.reads[: self.resumed])


@dataclass(frozen=True)
class Opened:
    """The rows of some chunks of a table, as the source had them in one consistent read."""

    answer: Answer
    numbers: Sequence[int]
    rows: DataFrame
    seen: str
    high: Position


def moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")
