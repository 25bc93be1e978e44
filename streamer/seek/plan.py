"""What a move to another place means: which changes are sent again, which are never sent, and the checkpoint for it.

The checkpoint is of the next epoch, so that it counts before all earlier ones wherever it stands, and what is sent
again sorts behind what was sent. The lake leaves out of a new epoch what an older one sent. But what nobody delivered
before (skipped, or left out by the pipeline file as it was then) could come behind younger changes of the same rows
that are left out: so every table counts as not snapshotted, until a snapshot that begins behind all of it.
"""

from __future__ import annotations

import time
from typing import Any, NamedTuple

from contract import start_at
from contract.checkpoint import Checkpoint
from contract.gtid import GtidSet
from contract.pipeline import Pipeline
from contract.sequence import file_number
from streamer.delivery_errors import StartError
from streamer.errors import HeadraceError, PurgedError
from streamer.seek.errors import SeekError
from streamer.source import Facts
from streamer.start import first as first_start
from streamer.start.search import Found


class Plan(NamedTuple):
    """`again`: delivered transactions that are sent once more. `skipped`: such as are never sent. `snapshot_behind`:
    the place behind which the tables' snapshots must begin."""

    checkpoint: Checkpoint
    again: GtidSet
    skipped: GtidSet
    told: str
    snapshot_behind: str

    @property
    def moves(self) -> bool:
        return bool(self.again or self.skipped)

    def facts(self) -> dict[str, Any]:
        """For JSON."""
        place = self.checkpoint
        return {
            "moves": self.moves,
            "file": place.file,
            "pos": place.pos,
            "gtid_set": place.gtid_set,
            "epoch": place.epoch,
            "sent_again": str(self.again),
            "skipped": str(self.skipped),
            "found": self.told,
            "snapshot_behind": self.snapshot_behind,
        }


def plan(pipeline: Pipeline, checkpoint: Checkpoint, facts: Facts, to: str) -> Plan:
    """`to`: as `streamer.start` of the pipeline file. Asks the server. Raises SeekError, PurgedError and the errors of
    a connection."""
    found = _find(pipeline, facts, to)
    what = f"pipeline {pipeline.name} to {to}"
    if unknown := found.seen.subtract(facts.executed):
        cause = f"the server has not executed {unknown}"
        raise SeekError("moving", what, cause, "Give a set that it has: SELECT @@gtid_executed tells (MariaDB: "
                        "@@gtid_binlog_pos).")  # fmt: skip
    if lost := facts.purged.subtract(found.seen):
        cause = f"the server has purged transactions behind it: {lost}"
        raise PurgedError("moving", what, cause, "Move to earliest, or to a later place, and take a snapshot.")
    delivered = pipeline.source.gtids(checkpoint.seen_set or checkpoint.behind)
    again, skipped = delivered.subtract(found.seen), found.seen.subtract(delivered)
    to_come = facts.executed.subtract(found.seen)
    first = first_start.committed(pipeline, to_come, found.seen) if to_come and (again or skipped) else None
    file, pos = (facts.file, facts.pos) if again else (found.place.file, found.place.pos)
    moved = checkpoint.model_copy(
        update={
            "epoch": checkpoint.epoch + 1,
            "server_id": facts.server_id,
            "server_uuid": facts.server_uuid,
            "file": found.place.file,
            "pos": found.place.pos,
            "gtid_set": str(found.seen) if facts.gtids else "",
            "by_place": not facts.gtids,
            "seen_set": "",
            "read_from": None,
            "file_made": 0 if facts.gtids else first_start.file_made(pipeline, found.place),
            "temporary": (),
            "xid": None,
            "ts_ms": checkpoint.ts_ms if first is None else first,  # since then something waits
            "written_at": time.time_ns() // 1_000_000,
        }
    ).without_snapshots((checkpoint.epoch + 1, file_number(file), pos))
    return Plan(moved, again, skipped, found.told, f"{file}:{pos}")


def _find(pipeline: Pipeline, facts: Facts, to: str) -> Found:
    try:
        if isinstance(start_at.parse(to), GtidSet):
            pipeline.source.gtids(to)
    except ValueError as error:
        hint = f"Give {start_at.EXPECTED}."
        raise SeekError("moving", f"pipeline {pipeline.name} to {to!r}", str(error), hint) from None
    streamer = pipeline.streamer.model_copy(update={"start": to})
    try:
        return first_start.find(pipeline.model_copy(update={"streamer": streamer}), facts)
    except StartError as error:
        raise _of_a_move(error) from None


def _of_a_move(error: HeadraceError) -> SeekError:
    """The words of a first start, which go by a key of the pipeline file."""
    hint = error.hint.replace(" (streamer.start in the pipeline file)", "")
    return SeekError("moving", error.object, error.cause, hint)
