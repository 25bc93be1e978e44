"""Whose lake a folder is: a lake that another pipeline has made is refused before anything is written.

A pipeline is known by its name, and by its commit log, which only grows: one that stands before what the lake has is
another pipeline's, or was begun anew. Its changes would be taken for duplicates of those that the lake has, or leave a
hole between the two.
"""

from __future__ import annotations

from collections.abc import Callable

from contract import steps
from contract.checkpoint import Checkpoint
from contract.status import LakeStatus, parse
from spark.errors import LakeError
from spark.lake.lake import Lake
from spark.lake.manifests import manifests


def refuse_others(lake: Lake, newest: Callable[[], Checkpoint | None]) -> None:
    """`newest`: gives the last of the commit log. Raises LakeError where the lake is another pipeline's."""
    if text := lake.text(lake.status):
        refuse_foreign(lake, parse(text), newest())


def refuse_foreign(lake: Lake, last: LakeStatus | None, checkpoint: Checkpoint | None) -> None:
    """`last`: the lake's status; `checkpoint`: the newest of the commit log. Raises LakeError."""
    if last is None:
        return
    pipeline = lake.pipeline
    if last.pipeline != pipeline.name:
        raise LakeError(
            f"{lake.root} is the lake of the pipeline {last.pipeline}, not of {pipeline.name}: correct lake.path or "
            f"name in {pipeline.path}. Nothing was written"
        )
    if last.checkpoint is not None and (why := _other(last.checkpoint, checkpoint)):
        raise LakeError(
            f"the lake {lake.root} was not made from this commit log, or that was begun anew: {why}. Nothing was "
            "written. Where another pipeline has the lake or the topics, correct lake.path, kafka.bootstrap or name in "
            f"{pipeline.path}. Where the topics were lost, move the folder {lake.root} away, since changes between the "
            f"two are in neither, and {steps.snapshot(pipeline)}, which makes the lake anew"
        )


def refuse_staged(lake: Lake, newest: Callable[[], Checkpoint | None]) -> None:
    """Of a lake that has no status yet no job knows whose it is: rows that wait in it may be of another server.
    Raises LakeError."""
    for manifest in manifests(lake):
        if why := _other(manifest.p0, newest(), "what is staged was read behind"):
            raise LakeError(
                f"the rows in {manifest.folder(lake)} were not read from this commit log's server: {why}. Nothing was "
                f"written. Another pipeline of the name {lake.pipeline.name} put them there: correct its lake.path, "
                f"name or kafka.bootstrap, remove that folder, and {steps.compaction(lake.pipeline)}"
            )


def _other(known: Checkpoint, now: Checkpoint | None, word: str = "the lake has what was before") -> str | None:
    has = f"{word} {_told(known)}"
    if now is None:
        return f"{has}, and the commit log is empty"
    if now.place < known.place:
        return f"{has}, and the commit log ends at {_told(now)}"
    if now.epoch == known.epoch and now.server_uuid != known.server_uuid:
        return f"{has}, and the commit log is of the server {now.server_uuid}, without a new epoch since"
    if now.events < known.events:
        return f"{has}, {known.events:,} changes, and the commit log tells of {now.events:,} up to {_told(now)}"
    return None


def _told(at: Checkpoint) -> str:
    return f"{at.file}:{at.pos} of epoch {at.epoch} ({at.server_uuid})"
