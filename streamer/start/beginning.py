"""Where each attempt of a run begins: behind the last checkpoint, or, of a new pipeline, where its file says."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import structlog

from contract import names, steps
from contract.checkpoint import JOINED, Checkpoint
from contract.gtid import GtidSet
from contract.pipeline import Pipeline, Tables
from contract.sequence import file_number
from streamer import joined, outputs
from streamer.kafka import broker
from streamer.outgoing.transforming import Transforms, refuse_taken
from streamer.patience import Patience
from streamer.preflight import refusing as preflight
from streamer.preflight.findings import Finding
from streamer.servers import Chosen, Servers
from streamer.sinks.kafka import KAFKA
from streamer.start import division, resume, sent, way
from streamer.start import first as first_start
from streamer.start.unread import unread

log = structlog.get_logger("streamer")
BROKER_SECONDS = 3.0
SNAPSHOT = "When the stream runs, {}, for these tables: it reads their rows into the lake."
SNAPSHOT_ALL = "Take a snapshot of all tables: of those not kept, nothing says later that rows are missing."
NOT_KNOWN = (
    "The sinks may hold changes that a streamer sent before it was killed, and that this server has not: that is "
    "looked for in Kafka alone."
)


class Beginnings:
    """Of one run. The servers, and what is in Kafka, are asked until they answer; Stopping where the run is to end.
    `stopped`: whether it is."""

    def __init__(
        self, servers: Servers, transforms: Transforms, patience: Patience, stopped: Callable[[], bool]
    ) -> None:
        self._servers, self._transforms, self._patience, self._stopped = servers, transforms, patience, stopped
        self._titles = " and ".join(sink.title for sink in servers.whole.sinks)
        self._early: Checkpoint | None = None

    @property
    def _pipeline(self) -> Pipeline:
        return self._servers.whole

    def before_topics(self, found: Chosen) -> None:
        """Asks where a first start begins, which may be refused, before anything is made in Kafka; not of another
        start, as far as the broker knows, nor of one of two streamers: the other may begin the pipeline now. A commit
        log that is another pipeline's is refused before that one's streamer is shut out."""
        pipeline = self._pipeline
        if not pipeline.commits_in_kafka:
            return
        has_log = partial(broker.has_topic, pipeline.kafka, names.commit_log_topic(pipeline), BROKER_SECONDS)
        if self._patience.until_answered(has_log, KAFKA):
            self._patience.until_answered(partial(outputs.position, pipeline), KAFKA)
        elif not pipeline.streamer.high_availability:
            self._early = self._first(found)

    def begin(self, kept: Checkpoint | None, found: Chosen) -> tuple[Checkpoint, Chosen]:
        """Behind the checkpoint that was kept, if there is one, on the server that is chosen for it; else at the
        beginning, on the one that was found. Raises HeadraceError where it cannot."""
        begin, found = self._resumed(kept) if kept else (self._begun(found), found)
        return self._by_rules(begin), found

    def joining(self, old: Tables, new: Tables) -> list[str]:
        """The tables that the server has, and the stream has from `new` on."""
        return joined.coming(self._pipeline.model_copy(update={"source": self._servers.last, "tables": new}), old)

    def _begun(self, found: Chosen) -> Checkpoint:
        """The file may have got other tables meanwhile: then it is asked again what they want."""
        early, self._early = self._early, None
        return early if early is not None and early.tables == self._pipeline.tables.noted else self._first(found)

    def _first(self, found: Chosen) -> Checkpoint:
        resume.refuse_lost_checkpoint(self._pipeline, self._used())
        pipeline = self._servers.pipeline(found.source)
        begin, told = first_start.first(pipeline, found.facts)
        preflight.refuse(pipeline, pipeline.source.gtids(begin.behind), None, warned)
        log.info("first start", start=told, file=begin.file, pos=begin.pos, gtid_set=begin.gtid_set)
        return self._unread(begin, pipeline, found) if pipeline.feeds_lake else begin

    def _unread(self, begin: Checkpoint, pipeline: Pipeline, found: Chosen) -> Checkpoint:
        names = unread(pipeline, found.facts, begin)
        if waiting := joined.told(pipeline, names):
            again = steps.snapshot(self._pipeline)
            log.warning("tables have rows of before", not_yet_snapshotted=waiting, next_step=SNAPSHOT.format(again))
        if len(names) > JOINED:
            log.warning("not all of them are kept in mind", tables=len(names), kept=JOINED, next_step=SNAPSHOT_ALL)
        return begin.joining(dict.fromkeys(names, True), begin.place)

    def _resumed(self, kept: Checkpoint) -> tuple[Checkpoint, Chosen]:
        resume.refuse_other_flavor(self._pipeline, kept)
        refuse_taken(self._pipeline, kept.topics)
        resume.refuse_other_form(kept, self._pipeline.records.format, self._used)
        resume.refuse_unnamed_topics(self._pipeline, kept)
        checkpoint = self._patience.until_answered(partial(way.chosen, self._servers, kept), self._servers.title)
        found = self._server(checkpoint)
        begin = anew(checkpoint, found, found.anew) if found.anew else checkpoint
        begin = self._joined(self._divided(checkpoint, begin, found))
        log.info("resuming", server=found.source.where, file=begin.file, pos=begin.pos, gtid_set=begin.gtid_set)
        return begin, found

    def _server(self, checkpoint: Checkpoint) -> Chosen:
        """One that has all that was sent."""
        seen = self._pipeline.source.gtids(checkpoint.behind)
        again = self._pipeline.source.gtids(checkpoint.seen_set)  # delivered too, but read again
        choose = partial(self._servers.choose, checkpoint, seen)
        found = self._patience.until_answered(partial(choose, again), self._servers.title)
        if found.facts.server_uuid != checkpoint.server_uuid:
            partly = self._sent(checkpoint, seen)
            self._patience.check()
            found = self._patience.until_answered(partial(choose, partly.union(again)), self._servers.title)
        if found.facts.server_uuid == checkpoint.server_uuid:  # another one was checked before it was chosen
            reading, followed = self._servers.pipeline(found.source), checkpoint.tables or self._pipeline.tables
            preflight.refuse(reading, seen, checkpoint.ts_ms / 1000, warned, followed)
        return found

    def _sent(self, checkpoint: Checkpoint, seen: GtidSet) -> GtidSet:
        if self._pipeline.has_kafka:
            return self._patience.until_answered(self._behind(checkpoint), KAFKA)
        log.warning("what was sent behind the checkpoint is not known", sinks=self._titles, meaning=NOT_KNOWN)
        return seen

    def _behind(self, checkpoint: Checkpoint) -> Callable[[], GtidSet]:
        return partial(sent.behind, self._pipeline, checkpoint, self._stopped)

    def _divided(self, checkpoint: Checkpoint, begin: Checkpoint, found: Chosen) -> Checkpoint:
        """Where changes become records otherwise than before."""
        seen = self._pipeline.source.gtids(checkpoint.seen_set)  # read again, and passed by

        def read_back() -> GtidSet:
            return self._patience.until_answered(self._behind(checkpoint), KAFKA).subtract(seen)

        end = begin.epoch, file_number(found.facts.file), found.facts.pos
        sends = self._transforms.sends
        begin = division.marked(self._pipeline, checkpoint, begin, sends, end, read_back)
        begin = division.renamed(self._pipeline, checkpoint, begin, sends, end, self._used)
        self._patience.check()
        return begin

    def _joined(self, begin: Checkpoint) -> Checkpoint:
        """A snapshot of a table begins where the stream follows it."""
        tables = self._pipeline.tables
        if begin.tables == tables.noted:
            return begin
        asked = partial(self.joining, begin.tables or tables, tables)
        came = self._patience.until_answered(asked, self._servers.title)
        return begin.following(tables).joining(dict.fromkeys(came, True), begin.place)

    def _by_rules(self, begin: Checkpoint) -> Checkpoint:
        """Snapshots show their rows by the same rules, and a later start knows what was sent by them."""
        begin = begin.showing(self._transforms.rules, self._transforms.shown_by)
        told: dict[str, Any] = {"sends": self._transforms.sends, "form": self._pipeline.records.format}
        if self._pipeline.has_kafka:
            told["templates"] = tuple(dict.fromkeys((*begin.named_by, self._pipeline.kafka.topic)))
        if self._pipeline.delivery == "at_least_once":
            told["run"] = ""  # what stands in Kafka behind a checkpoint from now on was not taken back
        same = all(getattr(begin, name) == value for name, value in told.items())
        return begin if same else begin.model_copy(update=told)

    def _used(self) -> list[str]:
        """Where records of the pipeline are already."""
        return self._patience.until_answered(partial(outputs.used, self._pipeline), self._titles)


def anew(checkpoint: Checkpoint, found: Chosen, why: str) -> Checkpoint:
    """The next epoch, on the server that was found."""
    begin = resume.anew(checkpoint, found.facts)
    uuid = found.facts.server_uuid
    log.warning("coordinates begin anew", why=why, server=found.source.where, uuid=uuid, epoch=begin.epoch)
    return begin


def warned(finding: Finding) -> None:
    say = log.info if finding.level == "ok" else log.warning
    say("preflight", level=finding.level, check=finding.name, found=finding.what, fix=finding.statement)
