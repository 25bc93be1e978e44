"""`headrace seek`: looks whether the pipeline stands still, plans the move, and writes the checkpoint."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import structlog
from confluent_kafka import KafkaException

from contract import names, steps
from contract.checkpoint import Checkpoint
from contract.pipeline import Pipeline
from streamer import guarantees, outputs
from streamer.control.http import take_port
from streamer.control.status import Status
from streamer.delivery_errors import BrokerUnreachableError, PortInUseError
from streamer.flavors.dump import GHOST_HEARTBEATS, replica_uuid
from streamer.kafka import broker
from streamer.ledger import Ledger
from streamer.patience import Patience, Stopping
from streamer.seek.errors import SeekError, SkipsChangesError, StillRunningError
from streamer.seek.plan import Plan, plan
from streamer.servers import Chosen, Servers
from streamer.source import readers
from streamer.start import resume as start
from streamer.start import way

log = structlog.get_logger("streamer")
WRITE_SECONDS = 30.0
LOOK_SECONDS = 0.5
PAUSE = "Pause or stop it first."


def seek(pipeline: Pipeline, to: str, skip_changes: bool = False, dry_run: bool = False) -> Plan:
    """Moves the pipeline, unless it stands there already. `skip_changes`: changes that were not delivered may be lost.
    `dry_run`: nothing is moved, and the pipeline may stream meanwhile.

    Raises SeekError, SkipsChangesError, StillRunningError, PurgedError, WrongServerError, and the errors of a
    connection and of the broker; nothing was moved then.
    """
    if dry_run:
        return _planned(pipeline, to, skip_changes)[0]
    with _alone(pipeline):
        planned, checkpoint, found = _planned(pipeline, to, skip_changes)
        if planned.moves:
            if pipeline.delivery == "at_least_once":
                _refuse_reader(pipeline, found)
            _write(pipeline, checkpoint, planned.checkpoint)
        return planned


def _planned(pipeline: Pipeline, to: str, skip_changes: bool) -> tuple[Plan, Checkpoint, Chosen]:
    checkpoint = _checkpoint(pipeline)
    servers = Servers(pipeline)
    found, stands = servers.own(checkpoint) or servers.any(), way.chosen(servers, checkpoint)
    facts = found.facts
    if stands.by_place or not facts.gtids:
        start.refuse_by_place(stands, facts)
        facts = facts.by_place()
    start.refuse_lacking(stands, facts, pipeline.source.gtids(stands.seen_set or stands.behind))
    planned = plan(servers.pipeline(found.source), stands, facts, to)
    if planned.skipped and not skip_changes:
        raise SkipsChangesError(
            "moving", f"pipeline {pipeline.name} to {to}",
            f"these transactions were not delivered, and never would be: {planned.skipped}",
            "If that is meant, say so (--skip-changes; over the REST API skip_changes: true), and "
            f"afterwards {steps.snapshot(pipeline)}.",
        )  # fmt: skip
    return planned, checkpoint, found


@contextmanager
def _alone(pipeline: Pipeline) -> Iterator[None]:
    """The streamer's port is held for as long as the block lasts, so that none starts on this machine."""
    what = ("moving", f"pipeline {pipeline.name}")
    try:
        http = pipeline.streamer.http
        listener = take_port(http.host, http.port)
    except PortInUseError as error:
        cause = f"its streamer runs, or something else has {error.object}"
        raise StillRunningError(*what, cause, PAUSE) from None
    try:
        if pipeline.streamer.high_availability and (others := _members(pipeline)):
            raise StillRunningError(*what, f"streamers of it run elsewhere: {others}", PAUSE)
        yield
    finally:
        listener.close()


def _members(pipeline: Pipeline) -> int:
    group = names.election_group(pipeline)
    try:
        found = broker.admin(pipeline.kafka).describe_consumer_groups([group])[group].result()
    except KafkaException as error:
        raise broker.typed(error, "asking for the streamers of", pipeline.kafka) from None
    return len(found.members)


def _refuse_reader(pipeline: Pipeline, found: Chosen) -> None:
    """Without transactions nothing shuts a streamer out that runs elsewhere, and an idle one writes nothing that would
    tell of it; but the server lists its readers. One that has just ended is still among them for some heartbeats: that
    is waited for. Raises StillRunningError."""
    source = found.source
    ours = source.server_id, replica_uuid(source.server_id, pipeline.name)
    until = time.monotonic() + GHOST_HEARTBEATS * source.heartbeat_seconds
    while ours in readers(source, found.facts.version):
        if time.monotonic() >= until:
            cause = f"a streamer of it, on another machine perhaps, reads the binlog of {source.where}"
            raise StillRunningError("moving", f"pipeline {pipeline.name}", cause, PAUSE)
        time.sleep(LOOK_SECONDS)


def _checkpoint(pipeline: Pipeline) -> Checkpoint:
    checkpoint = outputs.position(pipeline)
    if checkpoint is None:
        cause = "it has no checkpoint: it never ran"
        hint = "Set streamer.start in the pipeline file, and start it."
        raise SeekError("moving", f"pipeline {pipeline.name}", cause, hint)
    return checkpoint


def _write(pipeline: Pipeline, known: Checkpoint, moved: Checkpoint) -> None:
    """As a streamer would: of exactly-once delivery another one that runs somewhere is shut out."""
    stop = threading.Event()
    timer = threading.Timer(WRITE_SECONDS, stop.set)
    timer.daemon = True
    timer.start()
    status = Status(pipeline.name)
    guarantee = guarantees.chosen(pipeline, status, Patience(status, stop), careful=False)
    try:
        guarantee.begin()
        if guarantee.checkpoints.load() != known:
            cause = "its checkpoint moved on meanwhile: a streamer of it runs elsewhere"
            raise StillRunningError("moving", f"pipeline {pipeline.name}", cause, PAUSE)
        bounds = pipeline.streamer.ledger
        ledger = Ledger(bounds.max_events, bounds.max_bytes, pipeline.source.gtids(moved.behind), moved.events)
        guarantee.delivery(ledger, moved, True).settle()
        log.info("moved", file=moved.file, pos=moved.pos, gtid_set=moved.gtid_set, epoch=moved.epoch)
    except Stopping:
        error = status.error["message"] if status.error else "the checkpoint was not acknowledged"
        hint = "Look where the pipeline stands (headrace seek --dry-run) before you try again."
        raise BrokerUnreachableError("moving", f"pipeline {pipeline.name}", error, hint) from None
    finally:
        timer.cancel()
        guarantee.sink.close()
        guarantee.checkpoints.close()
