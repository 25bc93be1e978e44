"""Tables that joined the pipeline with rows of before, and wait for a snapshot: what the checkpoint says, less what the
lake has read since. A lake that cannot be read from here says nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from contract.checkpoint import Checkpoint, Place
from contract.pipeline import Pipeline, Tables
from contract.status import LakeStatus
from streamer import source

ReadLake = Callable[[], LakeStatus | None]


def coming(reading: Pipeline, old: Tables) -> list[str]:
    """`db.table` of those that the server has now, of the pipeline's and not of the old ones. Raises as
    `source.tables`."""
    return [f"{db}.{table}" for db, table in source.tables(reading) if not old.match(db, table)]


def unread(checkpoint: Checkpoint, read_lake: ReadLake) -> dict[str, Place]:
    """`db.table` -> where it joined, of those that are followed still. The lake is asked where there are any."""
    joined = {name: place for name, place in checkpoint.joined.items() if checkpoint.follows(*name.split(".", 1))}
    lake = read_lake() if joined else None
    return {name: place for name, place in joined.items() if lake is None or not _has(lake, name, place)}


def told(pipeline: Pipeline, names: Iterable[str]) -> list[str]:
    """Those of the names that a snapshot can read. Of the others the lake keeps the changes alone: their marks stay,
    for the day on which it is to have their rows, and nobody is told to do anything."""
    return [name for name in names if not pipeline.changes_only(*name.split(".", 1))]


def without_rows(pipeline: Pipeline, names: Iterable[str]) -> list[str]:
    """The others."""
    return [name for name in names if pipeline.changes_only(*name.split(".", 1))]


def over(checkpoint: Checkpoint, read_lake: ReadLake) -> list[str]:
    """Those of which a snapshot was applied since, or that have left: when one joins again it is marked again."""
    return sorted(checkpoint.joined.keys() - unread(checkpoint, read_lake).keys())


def _has(lake: LakeStatus, name: str, place: Place) -> bool:
    """Whether a run of compaction that knew of the mark found a snapshot behind it."""
    table = lake.tables.get(name)
    if table is None or lake.checkpoint is None or lake.checkpoint.joined.get(name) != place:
        return False
    return table.snapshot is not None and table.unread is None
