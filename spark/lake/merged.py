"""How far the merge has come in `_changes`, by the checkpoint of its own query."""

from __future__ import annotations

import json

from spark.lake.lake import Lake


def merged_to(lake: Lake) -> int | None:
    """The version of `_changes` up to which the merge has come by its own checkpoint, whole commits alone; None where
    it has none."""
    done = [int(name) for name in lake.list(f"{lake.checkpoint('tables')}/commits") if name.isdigit()]
    behind = version_behind(lake, max(done)) if done else None
    return None if behind is None else behind - 1


def version_behind(lake: Lake, batch: int) -> int | None:
    """The version of `_changes` that comes behind a batch of the merge, or of which the batch has a part; None where
    the checkpoint does not have the batch."""
    text = lake.text(f"{lake.checkpoint('tables')}/offsets/{batch}")
    return int(json.loads(text.splitlines()[-1])["reservoirVersion"]) if text else None
