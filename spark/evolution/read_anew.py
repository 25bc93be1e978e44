"""The shape by which a snapshot read a table behind an ALTER TABLE, where no change has told of it yet. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from contract import sequence
from contract.schema import TableSchema
from spark.evolution.schema_change_rows import place


def read_anew(newest: TableSchema, read: TableSchema | None, floor: Sequence[int]) -> TableSchema | None:
    """The lake has its names and types already, so the past breaks there; the version is the one that the next change
    brings. `newest`: of the schema topic; `read`: of the table's snapshot, which begins at `floor`. None where the two
    are alike, or the topic's is of a later time."""
    if read is None or tuple(floor[:3]) <= place(newest) or read.shape() == newest.shape():
        return None
    epoch, file, pos = floor[:3]
    return read.model_copy(update={"version": newest.version + 1, "since": sequence.Sequence(epoch, file, pos)})
