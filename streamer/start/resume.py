"""What a start asks before it goes on behind a checkpoint, or begins without one."""

from __future__ import annotations

import time
from collections.abc import Callable

from contract import start_at, steps
from contract.checkpoint import Checkpoint
from contract.gtid import GtidSet
from contract.pipeline import Pipeline
from contract.sequence import file_number
from streamer.delivery_errors import (
    BehindError,
    FirstStartError,
    OtherFormError,
    SchemasLostError,
    TopicError,
    WrongServerError,
)
from streamer.errors import PurgedError
from streamer.protocol import refusals
from streamer.source import Facts


def resume(
    checkpoint: Checkpoint,
    facts: Facts,
    seen: GtidSet,
    partly: GtidSet | None = None,
) -> str:
    """Why the coordinates begin anew behind the transactions `seen`; empty where they go on, as far as can be told
    before the first of them comes (streamer/places.py).

    `partly`: further ones of which something was sent. By GTID a stream goes on from any server that has all that was
    streamed, and still has all that was not. Raises WrongServerError, BehindError, PurgedError.
    """
    if checkpoint.by_place or not facts.gtids:
        refuse_by_place(checkpoint, facts)
    refuse_lacking(checkpoint, facts, seen if partly is None else seen.union(partly))
    if lost := facts.purged.subtract(seen):
        raise PurgedError(
            "resuming",
            f"pipeline {checkpoint.pipeline}",
            f"the server {facts.server_uuid} has purged transactions that were not streamed yet: {lost}",
            "Go on from a server that still has them (source.host, source.failover); else start a pipeline of a new "
            "name, with a new snapshot, and keep binlogs longer (binlog_expire_logs_seconds) than a pause may be.",
        )
    if checkpoint.server_uuid != facts.server_uuid:
        return "another server"
    if (file_number(facts.file), facts.pos) < checkpoint.place[1:]:
        return "the server's binlog was begun anew"
    return ""


def begun_anew(checkpoint: Checkpoint, why: str) -> WrongServerError:
    """Of a stream that goes by file and position."""
    return WrongServerError(
        "going on with",
        f"pipeline {checkpoint.pipeline}",
        f"{why}; without GTIDs nothing tells what of it was streamed",
        "The binlog was reset (RESET BINARY LOGS AND GTIDS, RESET MASTER), or the server restored. Start a pipeline of "
        "a new name, with a new snapshot.",
    )


def refuse_lacking(checkpoint: Checkpoint, facts: Facts, streamed: GtidSet) -> None:
    missing = streamed.subtract(facts.executed)
    if checkpoint.server_uuid == facts.server_uuid and facts.under_way:  # another one's may come to nothing yet
        missing = missing.subtract(facts.under_way)
    if not missing:
        return
    where = ("resuming", f"pipeline {checkpoint.pipeline}")
    if checkpoint.server_uuid == facts.server_uuid:
        raise WrongServerError(
            *where,
            f"the server no longer has transactions that were streamed: {missing}",
            "It was reset or restored from a backup. Start a pipeline of a new name, with a new snapshot.",
        )
    cause = (
        f"its checkpoint is of the server {checkpoint.server_uuid}; the one that answers is {facts.server_uuid}, and "
        f"lacks transactions that were streamed: {missing}"
    )
    if facts.replicates is not False:
        raise BehindError(*where, cause, "It replicates: the streamer asks again.")
    raise WrongServerError(
        *where,
        cause,
        "Point source.host and source.port back at that server, or at one that has replicated all of it; else start a "
        "pipeline of a new name, with a new snapshot.",
    )


def refuse_by_place(checkpoint: Checkpoint, facts: Facts) -> None:
    """A place says nothing of another server. Raises WrongServerError, AnonymousError."""
    if checkpoint.server_uuid != facts.server_uuid:
        raise WrongServerError(
            "resuming",
            f"pipeline {checkpoint.pipeline}",
            f"its checkpoint is of the server {checkpoint.server_uuid}; the one that answers is {facts.server_uuid}, "
            "and without GTIDs on both nothing tells where in its binlog the stream would go on",
            "Point source.host and source.port back at that server; else start a pipeline of a new name, with a new "
            "snapshot. Servers with gtid_mode = ON can take each other's place.",
        )
    if not checkpoint.by_place:
        raise refusals.anonymous("resuming", f"pipeline {checkpoint.pipeline}")


def anew(checkpoint: Checkpoint, facts: Facts) -> Checkpoint:
    """The checkpoint in the server's own coordinates, of the next epoch. Its place is the beginning of the binlog: what
    was not streamed yet may stand anywhere in it."""
    return checkpoint.model_copy(
        update={
            "epoch": checkpoint.epoch + 1,
            "server_id": facts.server_id,
            "server_uuid": facts.server_uuid,
            "file": facts.first_file,
            "pos": start_at.FIRST,
            "seen_elsewhere": bool(checkpoint.seen_set),
            "read_from": None,
            "temporary": (),
            "xid": None,
            "written_at": time.time_ns() // 1_000_000,
        }
    )


def refuse_lost_schemas(checkpoint: Checkpoint, place: str, known: int) -> None:
    """`known`: schemas in that place. Raises SchemasLostError where the records behind the checkpoint had some:
    numbered from 1 again, versions that the lake already has would mean other columns."""
    if checkpoint.events and not known:
        raise SchemasLostError(
            "resuming",
            f"pipeline {checkpoint.pipeline}",
            f"by its checkpoint {checkpoint.events:,} records were sent, but {place} with their schemas is empty, "
            "or was deleted and made anew",
            "Bring its contents back, from a backup or a mirror; or start a pipeline of a new name, with "
            "a new snapshot.",
        )


def refuse_other_flavor(pipeline: Pipeline, checkpoint: Checkpoint) -> None:
    """Raises WrongServerError where a server of another flavor was streamed under the pipeline's name."""
    if checkpoint.flavor not in (None, pipeline.source.flavor):
        where = f"pipeline {pipeline.name}"
        raise WrongServerError("resuming", where, *steps.other_flavor(pipeline, str(checkpoint.flavor)))


def refuse_other_form(checkpoint: Checkpoint, form: str, used: Callable[[], list[str]]) -> None:
    """`form`: of the records to come. `used`: asks for the topics, or folders, that hold something, also of what was
    sent behind a first checkpoint. Raises OtherFormError where records of another form stand before them, which no
    reader of the topics would expect."""
    if checkpoint.form != form and (checkpoint.events or used()):
        raise OtherFormError(
            "resuming",
            f"pipeline {checkpoint.pipeline}",
            f"by its checkpoint records of the form {checkpoint.form} were sent, and records.format asks for {form} "
            "now",
            f"Write format: {checkpoint.form} again; or start a pipeline of a new name, which has topics of its own.",
        )


def refuse_unnamed_topics(pipeline: Pipeline, checkpoint: Checkpoint) -> None:
    """Raises TopicError where the lake would not read all the topics into which changes were sent up to there."""
    templates = pipeline.kafka.unnamed(checkpoint.named_by) if pipeline.feeds_lake else []
    if templates:
        raise TopicError("resuming", f"pipeline {pipeline.name}", *steps.unnamed_topics(pipeline, templates))


def refuse_lost_checkpoint(pipeline: Pipeline, used: list[str]) -> None:
    """`used`: topics, or folders, of a pipeline without a checkpoint into which something was written. Raises
    FirstStartError where there are any: begun anew, the stream would lack what was committed since."""
    if used:
        what = "topics" if pipeline.has_kafka else "folders"
        lost = (
            f"the commit log {pipeline.name}.commit-log"
            if pipeline.commits_in_kafka
            else "its checkpoint (checkpoints)"
        )
        raise FirstStartError(
            "starting",
            f"pipeline {pipeline.name} for the first time",
            f"it has no checkpoint, but its {what} hold records, or have held some: {', '.join(used[:5])}"
            + (f" and {len(used) - 5} more" if len(used) > 5 else ""),
            f"Give the pipeline another name, or delete these {what} if nobody needs them; or bring back {lost}.",
        )
