"""Which rows a pipeline's transforms leave in the lake's table: those that they would let a snapshot show there.

So a change that does not go to its table's topic can still say something of the row there: that it has left.
"""

from __future__ import annotations

from contract.transform_event import Event, Image
from contract.transforms import Chain, TransformFaultError


def left(chain: Chain, change: Event) -> Event | None:
    """Of a `change`, as it was before the transforms, that they dropped or sent elsewhere: the delete of its row, where
    the row was in the table and is not any more. None where it was not, or still is: then the change alone was dropped.
    Raises TransformFaultError where a transform fails that is to stop."""
    if change.before is None or _shown(chain, change, change.after) is not None:
        return None
    was = _shown(chain, change, change.before)
    if was is None:
        return None
    return Event("d", change.db, change.table, was.key, was.after, None, chain.topic, change.source)


def _shown(chain: Chain, change: Event, row: Image | None) -> Event | None:
    """As a snapshot would show the row; None where it would not be in the table."""
    if row is None:
        return None
    source = {**change.source, "snapshot": "true"}
    read = Event("r", change.db, change.table, change.key, None, row, chain.topic, source)
    try:
        made = chain.apply(read.copy())
    except TransformFaultError as fault:
        if fault.on_error == "stop":
            raise
        return None  # the snapshot has it among the dead letters
    return made if made is not None and made.topic == chain.topic else None
