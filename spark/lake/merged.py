"""How far the merge has come in `_changes`, by the checkpoint of its own query."""

from __future__ import annotations

import json

from spark.lake.lake import Lake, commit_file


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


def followed(lake: Lake) -> int | None:
    """The version of `_changes` from which on the merge needs the log: Spark asks at each start for what the last batch
    had. 0 where there was one alone, None where there was none yet."""
    folder = f"{lake.checkpoint('tables')}/offsets"
    last = sorted(int(name) for name in lake.list(folder) if name.isdigit())[-2:]
    versions = [version for number in last if (version := version_behind(lake, number)) is not None]
    return min(versions) if len(versions) == 2 else 0 if last else None


def in_log(lake: Lake, version: int) -> bool:
    """Whether the log of `_changes` has that commit. Delta removes those that are older than it keeps the log, but for
    what its newest checkpoint needs."""
    return lake.exists(commit_file(lake.changes, version))
