"""Where a start begins: behind the commit log's last checkpoint, or, without one, where the file says.

A first start writes its checkpoint before its first record: whatever happens next resumes from there, and a
snapshot has its P0.
"""

from __future__ import annotations

import time

from contract import gtids
from contract.checkpoint import Checkpoint
from contract.pipeline import Pipeline
from streamer.delivery_errors import FirstStartError, SchemasLostError, WrongServerError
from streamer.source import Facts

BINLOG_START = 4  # the first event's position in every binlog file


def resume(checkpoint: Checkpoint, facts: Facts) -> None:
    """Checks that the server is the checkpoint's and still has what the checkpoint has seen. Raises
    WrongServerError."""
    if checkpoint.server_uuid != facts.server_uuid:
        raise WrongServerError(
            "resuming",
            f"pipeline {checkpoint.pipeline}",
            f"its checkpoint is of the server {checkpoint.server_uuid}, the one that answers is {facts.server_uuid}",
            "Point source.host and source.port back at that server, or start a pipeline of a new name, with a new "
            "snapshot.",
        )
    seen = gtids.parse(checkpoint.gtid_set)
    if not facts.executed.issuperset(seen):
        raise WrongServerError(
            "resuming",
            f"pipeline {checkpoint.pipeline}",
            f"the server no longer has transactions that were streamed: {seen.subtract(facts.executed)}",
            "It was reset or restored from a backup. Start a pipeline of a new name, with a new snapshot.",
        )


def refuse_lost_schemas(checkpoint: Checkpoint, topic: str, known: int) -> None:
    """`known`: schemas in the topic. Raises SchemasLostError where the records behind the checkpoint had some: numbered
    from 1 again, versions that the lake already has would mean other columns."""
    if checkpoint.events and not known:
        raise SchemasLostError(
            "resuming",
            f"pipeline {checkpoint.pipeline}",
            f"by its checkpoint {checkpoint.events:,} records were sent, but the topic {topic} with their schemas is "
            "empty, or was deleted and made anew",
            "Bring its records back, from a backup or a mirror of the broker; or start a pipeline of a new name, with "
            "a new snapshot.",
        )


def refuse_lost_checkpoint(pipeline: Pipeline, used: list[str]) -> None:
    """`used`: topics of a pipeline without a checkpoint into which something was written. Raises FirstStartError where
    there are any: begun anew, the stream would lack what was committed since."""
    if used:
        raise FirstStartError(
            "starting",
            f"pipeline {pipeline.name} for the first time",
            f"it has no checkpoint, but its topics hold records, or have held some: {', '.join(used[:5])}"
            + (f" and {len(used) - 5} more" if len(used) > 5 else ""),
            "Give the pipeline another name, or delete these topics if nobody needs them; or bring back the commit "
            f"log {pipeline.name}.commit-log.",
        )


def first(pipeline: Pipeline, facts: Facts) -> Checkpoint:
    """The checkpoint of a pipeline that has none."""
    chosen = pipeline.streamer.start
    begin, file, pos = facts.purged, facts.first_file, BINLOG_START
    if chosen == "latest":
        begin, file, pos = facts.executed, facts.file, facts.pos
    elif chosen != "earliest":
        begin = pipeline.source.gtids(chosen)
    now = time.time_ns() // 1_000_000
    return Checkpoint(
        pipeline=pipeline.name,
        connector_id=f"headrace-{pipeline.name}",
        server_id=facts.server_id,
        server_uuid=facts.server_uuid,
        epoch=0,
        file=file,
        pos=pos,
        gtid_set=str(begin),
        ts_ms=now,
        events=0,
        written_at=now,
    )
