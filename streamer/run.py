"""The composition root of one pipeline: the only place that names the concrete classes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from functools import partial

import structlog

from contract import names
from contract.checkpoint import Checkpoint
from contract.gtid import GtidSet
from contract.gtid_places import UpTo
from contract.pipeline import Pipeline, Tables
from contract.schema import TableSchema
from streamer import collector, guarantees, joined, outputs, rules, schemas, source
from streamer.attempts import Attempts
from streamer.by_place import ByPlaceDecoder
from streamer.checkpoints.port import Checkpoints
from streamer.connection import BinlogConnection, Silence
from streamer.control.lag_bytes import LagBytes
from streamer.control.report import Report
from streamer.control.status import Status
from streamer.ddl.notes import DdlNotes
from streamer.definitions import Definitions
from streamer.definitions_since import Ahead
from streamer.delivery import Delivery
from streamer.delivery_errors import CutShortError
from streamer.errors import HeadraceError
from streamer.follow.file import FileWatch
from streamer.follow.swap import Swap
from streamer.goal import Goal
from streamer.kafka import broker, topics
from streamer.lake import Lake
from streamer.ledger import Ledger
from streamer.outgoing.stream import OutgoingStream
from streamer.outgoing.transforming import Transforms, refuse_taken
from streamer.patience import Patience, Stopping
from streamer.preflight import refusing as preflight
from streamer.protocol.filters import Filters
from streamer.protocol.held import PreparedXa
from streamer.resting import Resting
from streamer.routes import Router
from streamer.seen import Seen
from streamer.servers import Chosen, Servers
from streamer.sinks.kafka import KAFKA
from streamer.start import resume, way
from streamer.start.beginning import BROKER_SECONDS, Beginnings, anew, warned
from streamer.stream import Stream
from streamer.transaction import BinlogDecoder
from streamer.watcher import Watcher

log = structlog.get_logger("streamer")


class Runner:
    """One run of a pipeline. `stop` may be set by a signal; `report` is what the API shows at any time. `oneshot`: it
    ends at the position that the server has when it begins, whatever the pipeline file says."""

    def __init__(self, pipeline: Pipeline, stop: threading.Event, oneshot: bool = False) -> None:
        outputs.check_classes(pipeline)
        if pipeline.has_kafka:
            broker.check(pipeline)
        self._pipeline = pipeline
        self._stop = stop
        self._oneshot = oneshot or pipeline.streamer.mode == "oneshot"
        self._until: GtidSet | None = None  # of a oneshot run, from its beginning on
        self.status = Status(pipeline.name)
        self.report = Report(pipeline, self.status, "oneshot" if self._oneshot else "continuous")
        self.report.lag_bytes = LagBytes()
        self._patience = Patience(self.status, stop)
        self._servers = Servers(pipeline, warned)
        self._file = self.report.file = FileWatch(pipeline, self._followable)
        self._ahead = Ahead()  # of all attempts
        self._resting = Resting(source.end)
        self._silence = Silence()
        self._moved_to: Callable[[], Iterable[str]] = tuple  # topics that transforms chose

    def run(self) -> None:
        """Until the stop, or the end of a oneshot run. Raises HeadraceError when the pipeline cannot go on, after what
        was accepted before is delivered and checkpointed; CutShortError where a oneshot run was stopped before its
        end."""
        try:
            with self._file.watching():
                self._run()
            self.status.enter("stopped")
            log.info("finished", gtid_set=str(self._until))
        except Stopping:
            self.status.enter("stopped")
            log.info("stopped")
            if self._oneshot:
                raise self._cut_short() from None
        except HeadraceError as error:
            self.status.fail(error)
            raise

    def _run(self) -> None:
        pipeline = self._pipeline
        self._transforms = self.report.transforms = Transforms(pipeline)
        self._beginnings = Beginnings(self._servers, self._transforms, self._patience, self._stop.is_set)
        found = self._servers.any()
        if pipeline.has_kafka:
            self._patience.until_answered(partial(broker.answers, pipeline.kafka, BROKER_SECONDS), KAFKA)
            self._beginnings.before_topics(found)
            self._patience.until_answered(self._service_topics, KAFKA)
        attempt, forget = partial(self._attempt, found), self.report.detach
        self._attempts = Attempts(pipeline, self.status, self._patience, self._stop, attempt, forget)
        self._attempts.run()

    def _attempt(self, found: Chosen) -> None:
        """From the last checkpoint on."""
        guarantee = guarantees.chosen(self._pipeline, self.status, self._patience, self._attempts.careful)
        try:
            guarantee.begin()
            self._stream(guarantee, found)
        finally:
            guarantee.sink.close()
            guarantee.checkpoints.close()

    def _stream(self, guarantee: guarantees.Guarantee, found: Chosen) -> None:
        checkpoints = guarantee.checkpoints
        checkpoint, known = self._kept(checkpoints)
        pipeline = self._pipeline
        begin, found = self._beginnings.begin(checkpoint, found)
        begin = begin.joining(dict.fromkeys(joined.over(begin, Lake(pipeline).read), False), begin.place)
        bounds = pipeline.streamer.ledger
        ledger = Ledger(bounds.max_events, bounds.max_bytes, pipeline.source.gtids(begin.behind), begin.events)
        seen = pipeline.source.gtids(begin.seen_set) if begin.seen_set else None
        prepared = PreparedXa(bounds.max_bytes, ledger.released, seen, begin.temporary)
        delivery = guarantee.delivery(ledger, begin, begin is not checkpoint)
        watcher = delivery.watcher
        self._ahead.meanwhile = delivery.turn
        self._ahead.durable = lambda: pipeline.source.gtids(watcher.checkpoint.behind)
        definitions = Definitions(found.source, ledger.entered, self._ahead)
        filters = self.report.filters = rules.filters(pipeline)
        made = self._transforms
        plain = not pipeline.transforms and not pipeline.records.asks
        stream: Stream = (Stream if plain else partial(OutgoingStream, pipeline, made))(
            connect=lambda gtids: self._connect(stream, watcher, definitions, prepared, gtids),
            decoder=partial(self._decoder, watcher, prepared, definitions, filters, ledger),
            delivery=delivery,
            watcher=watcher,
            status=self.status,
            ddl=DdlNotes(pipeline, filters.drop),
            epoch=begin.epoch,
            source=self._servers.title,
        )
        if seen is not None:
            stream.seen = Seen(seen, None if begin.seen_elsewhere else begin.place[1:])
        publish = partial(self._publish, delivery, checkpoints)
        stream.router = Router(pipeline, schemas.Schemas(known), self._ensure, publish, made.chain)
        self._moved_to = lambda: set(stream.router.others)
        stream.goal = self._goal(begin, found)
        stream.swap = Swap(
            self._file, delivery, watcher, prepared, self._beginnings.joining, partial(self._follow, stream)
        )
        self.report.attach(found.facts, stream, ledger, watcher, checkpoints, guarantee.sink)
        self.report.reads(found.source, found.facts)
        self.report.ahead = definitions.ahead
        self._until_stopped(stream)

    def _decoder(
        self, watcher: Watcher, prepared: PreparedXa, definitions: Definitions, filters: Filters, ledger: Ledger,
        behind: tuple[str, int] | None,
    ) -> BinlogDecoder:  # fmt: skip
        wanted, statements = self._pipeline.tables.match, self._pipeline.source.statements
        if not watcher.checkpoint.by_place:
            return BinlogDecoder(wanted, prepared, statements, definitions, behind, filters, ledger.entered)
        assert behind is not None
        stood = watcher.checkpoint
        made = stood.file_made if stood.file == behind[0] else 0
        return ByPlaceDecoder(wanted, behind, made, prepared=prepared, statements=statements, filters=filters)

    def _kept(self, checkpoints: Checkpoints) -> tuple[Checkpoint | None, list[TableSchema]]:
        """What the streamers before this one left; the tables are those of the file by then."""
        checkpoint = self._patience.until_answered(partial(checkpoints.load, self._stop.is_set), checkpoints.title)
        self._patience.check()
        known = self._patience.until_answered(partial(checkpoints.schemas, self._stop.is_set), checkpoints.title)
        self._patience.check()
        if (tables := self._file.offered) is not None:  # it was changed while this streamer stood by
            self._pipeline = self._pipeline.model_copy(update={"tables": tables})
            self._servers.follow(self._pipeline.tables)
            self._file.taken(self._pipeline.tables)
        if checkpoint:
            resume.refuse_lost_schemas(checkpoint, schemas.place(self._pipeline), len(known))
        return checkpoint, known

    def _until_stopped(self, stream: Stream) -> None:
        """Runs, then delivers what was accepted, whatever ended it."""
        try:
            stream.delivery.settle()  # a first checkpoint is durable before the first record
            collector.settle()
            self.status.enter("streaming")
            log.info("streaming")
            stream.run()
        except (HeadraceError, Stopping) as end:
            if isinstance(end, Stopping):
                self.status.enter("stopping")
                log.info("stopping", events_to_flush=stream.delivery.ledger.depth)
            began = time.monotonic()
            self._attempts.ended(end, stream.delivery, stream.halfway.gtid)
            if stream.delivery.drain(self._pipeline.streamer.shutdown_seconds):
                log.info("flushed", seconds=round(time.monotonic() - began, 2))
            else:
                log.warning(
                    "not all was acknowledged; it is sent again at the next start", left=stream.delivery.ledger.depth
                )
            raise

    def _connect(
        self, stream: Stream, watcher: Watcher, definitions: Definitions, prepared: PreparedXa, gtids: GtidSet
    ) -> BinlogConnection:
        """Each time anew: the server behind the address may have become another one, or be away."""
        partly = gtids.copy()
        partly.add_all(filter(None, [stream.halfway.gtid]))
        checkpoint, behind = watcher.checkpoint, stream.behind()
        if checkpoint.by_place:
            assert behind is not None
            gtids = UpTo.place(*behind)  # the place itself, and not that of the last transaction's beginning
            if stream.begun_anew:
                raise resume.begun_anew(checkpoint, stream.begun_anew)
        found = self._servers.choose(checkpoint, gtids, partly)
        if why := found.anew or stream.begun_anew:
            if stream.goal is not None:
                stream.goal.elsewhere(found.facts, found.source.where)
            stream.delivery.empty()
            watcher.begin_anew(anew(watcher.checkpoint, found, why))
            stream.delivery.settle()  # the new epoch is durable before its first record
            stream.begin_anew(watcher.checkpoint.epoch)
            prepared.elsewhere()
        elif not checkpoint.by_place and way.lacks_gtid(found.source, behind):
            raise way.anonymous(found.source, behind or ("", 0))
        self.report.reads(found.source, found.facts)
        stream.ddl.reads(found.facts.lower_case, found.facts.logs_cascades)
        stream.ddl.computes = partial(source.computes, found.source)
        prepared.temporary.lower_case = found.facts.lower_case
        definitions.source = found.source
        stream.resting = self._resting
        stream.resting.connected(found.source, found.facts, time.monotonic())
        return BinlogConnection(found.source, gtids, self._pipeline.name, self._silence)

    def _goal(self, begin: Checkpoint, found: Chosen) -> Goal | None:
        """Of a oneshot run: what the server had when the first attempt began."""
        if not self._oneshot:
            return None
        if type(self._until) is not type(found.facts.executed):
            self._until = found.facts.executed
            log.info("oneshot", until=str(self._until))
        self.report.until = str(self._until)
        return Goal(self._until, self._pipeline.source.gtids(begin.seen_set or begin.behind))

    def _cut_short(self) -> HeadraceError:
        cause = "it was stopped before it reached the position that the server had when it began"
        hint = "Run it again: it goes on behind what it has delivered."
        return CutShortError("finishing the oneshot run of", f"pipeline {self._pipeline.name}", cause, hint)

    def _followable(self, found: Pipeline) -> None:
        """Asked before other tables than now are followed. Raises HeadraceError where they cannot be."""
        reading = found.model_copy(update={"source": self._servers.last})
        preflight.refuse_tables(reading, self._pipeline.tables, warned)
        topics.event_topics(reading, source.tables(reading))
        refuse_taken(reading, self._moved_to())

    def _follow(self, stream: Stream, tables: Tables) -> None:
        self._pipeline = self._pipeline.model_copy(update={"tables": tables})
        self._servers.follow(tables)
        self._transforms.follow(self._pipeline)
        stream.router.follow(tables)
        stream.ddl.pipeline = self._pipeline

    def _service_topics(self) -> None:
        for report in topics.ensure(self._pipeline, topics.service_topics(self._pipeline)):
            if report.state == "created":
                log.info("topic created", topic=report.topic)
            elif report.differences:
                log.warning("topic differs", topic=report.topic, difference=report.advice())

    def _publish(self, delivery: Delivery, checkpoints: Checkpoints, schema: TableSchema) -> None:
        """Every sink has it, then what the next start reads."""
        delivery.publish(schema, topic=names.schemas_topic(self._pipeline))
        self._patience.until_answered(partial(checkpoints.keep, schema), checkpoints.title)

    def _ensure(self, wanted: list[topics.Wanted]) -> list[topics.Report]:
        if not self._pipeline.has_kafka:
            return []
        return self._patience.until_answered(partial(topics.ensure, self._pipeline, wanted), KAFKA)
