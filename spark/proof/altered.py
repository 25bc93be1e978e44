"""Up to where changes do not tell all that became of a table's rows, as far as the lake knows.

What was read of the source before such a place proves nothing of the lake behind it: the changes between the two may
lead from one to the other, and the lake lacks all the same what none of them told.
"""

from __future__ import annotations

from collections.abc import Iterable

from contract import lost_changes
from contract.checkpoint import Checkpoint
from contract.renames import FILE
from spark.evolution.state import State
from spark.lake.lake import Lake
from spark.lake.stopped import Name
from spark.proof.rewind import Position


def untold(lake: Lake, checkpoint: Checkpoint | None, names: Iterable[Name]) -> dict[Name, Position]:
    """By table, the last of: its statements that changed its shape, or may have changed rows; the ends of times in
    which it was not followed; the changes that Kafka lost."""
    statements, found = altered(lake), dict[Name, Position]()
    lost = lake.text(lake.at(lost_changes.FILE))
    for db, table in names:
        gone = lost_changes.until(lost, lake.pipeline, db, table) if lost else None
        gap = checkpoint.since(db, table) if checkpoint else None
        if places := [place for place in (statements.get((db, table)), gap, gone) if place]:
            found[db, table] = max(places)
    return found


def altered(lake: Lake) -> dict[Name, Position]:
    """The place of each table's last statement that changed its shape, or may have changed rows."""
    text, found = lake.text(lake.at(FILE)), dict[Name, Position]()
    for db, table, seq in State.model_validate_json(text).altered if text else ():
        found[db, table] = max(seq, found.get((db, table), seq))
    return found
