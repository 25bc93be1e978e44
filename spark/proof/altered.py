"""Where each table was last altered, as far as the lake has followed its source."""

from __future__ import annotations

from contract.renames import FILE
from spark.evolution.state import State
from spark.lake.lake import Lake
from spark.lake.stopped import Name
from spark.proof.rewind import Position


def altered(lake: Lake) -> dict[Name, Position]:
    """The place of each table's last statement that changed its shape, or may have changed rows."""
    text, found = lake.text(lake.at(FILE)), dict[Name, Position]()
    for db, table, seq in State.model_validate_json(text).altered if text else ():
        found[db, table] = max(seq, found.get((db, table), seq))
    return found
