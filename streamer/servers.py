"""Which of the pipeline's servers is read: the one that was good last, or, by GTID, one that can take its place.

In: the checkpoint and the transactions that the stream has. Out: a server that has all of these, still has all that
follow them, and is set as a stream needs it. Raises typed errors; one that time may mend only where it may.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple

from contract.checkpoint import Checkpoint
from contract.gtid import GtidSet
from contract.pipeline import Pipeline, Source, Tables
from streamer import source
from streamer.connection import BinlogConnection
from streamer.delivery_errors import BehindError, WrongServerError
from streamer.errors import HeadraceError, UnreachableError
from streamer.flavors import flavor
from streamer.preflight import refusing as preflight
from streamer.preflight.findings import Finding
from streamer.protocol.packets import Packets, ServerAnswerError
from streamer.source import Facts
from streamer.start import resume as start


class Chosen(NamedTuple):
    """`anew`: why its coordinates begin anew, so that the epoch rises; empty where they go on."""

    source: Source
    facts: Facts
    anew: str


class Servers:
    """Those of source.host and source.failover. `tell` gets what preflight finds of another server. Times are seconds
    of the monotonic clock."""

    def __init__(self, pipeline: Pipeline, tell: Callable[[Finding], None] = lambda finding: None) -> None:
        self._pipeline = pipeline
        self._tell = tell
        self._servers = list(pipeline.source.servers())
        self._behind: dict[str, float] = {}  # since when a server lacks what was streamed

    @property
    def title(self) -> str:
        return f"{flavor(self._pipeline.source).title} at {' or '.join(one.where for one in self._servers)}"

    @property
    def whole(self) -> Pipeline:
        """The pipeline, with the tables that are followed now."""
        return self._pipeline

    def pipeline(self, server: Source) -> Pipeline:
        """The pipeline as if it had this server alone."""
        return self._pipeline.model_copy(update={"source": server})

    @property
    def last(self) -> Source:
        """The one that was good last; before that, the first."""
        return self._servers[0]

    def follow(self, tables: Tables) -> None:
        """From now on these are the pipeline's tables."""
        self._pipeline = self._pipeline.model_copy(update={"tables": tables})

    def any(self) -> Chosen:
        """The first that answers. Raises what the first one said where none does."""
        errors: list[HeadraceError] = []
        for server in self._servers:
            try:
                return Chosen(server, source.facts(server), "")
            except HeadraceError as error:
                errors.append(error)
        raise errors[0]

    def own(self, checkpoint: Checkpoint) -> Chosen | None:
        """The checkpoint's own server; None where it does not answer, or nobody is it."""
        for server in self._servers:
            try:
                facts = source.facts(server)
            except HeadraceError:
                continue
            if facts.server_uuid == checkpoint.server_uuid:
                return Chosen(server, facts, "")
        return None

    def choose(self, checkpoint: Checkpoint, seen: GtidSet, partly: GtidSet | None = None) -> Chosen:
        """The checkpoint's own server where it answers, else the first that can take its place. `seen`: the whole
        transactions that were taken in; `partly`: further ones of which something was sent.

        Raises UnreachableError, BehindError, and what is to be mended by a person: WrongServerError, PurgedError,
        PreflightError, AccessDeniedError, SourceRefusedError.
        """
        errors: dict[str, HeadraceError] = {}
        others: list[tuple[Source, Facts]] = []
        for server in self._servers:
            try:
                facts = source.facts(server)
                facts = facts.by_place() if checkpoint.by_place and facts.gtids else facts
                if facts.server_uuid == checkpoint.server_uuid:
                    return self._good(server, facts, checkpoint, seen, partly)
                others.append((server, facts))
            except HeadraceError as error:
                errors[server.where] = error
        for server, facts in others:
            try:
                return self._good(server, facts, checkpoint, seen, partly)
            except HeadraceError as error:
                errors[server.where] = self._given_up(server, error)
        raise self._none(errors)

    def _good(
        self, server: Source, facts: Facts, checkpoint: Checkpoint, seen: GtidSet, partly: GtidSet | None
    ) -> Chosen:
        anew = start.resume(checkpoint, facts, seen, partly)
        if facts.server_uuid != checkpoint.server_uuid:
            followed = checkpoint.tables or self._pipeline.tables
            preflight.refuse(self.pipeline(server), seen, checkpoint.ts_ms / 1000, self._tell, followed)
            try_dump(server, seen, self._pipeline.name)
        self._behind.clear()
        self._servers = [server, *(one for one in self._servers if one is not server)]
        return Chosen(server, facts, anew)

    def _given_up(self, server: Source, error: HeadraceError) -> HeadraceError:
        """A server that lacks what was streamed may catch up, but not for ever."""
        if not isinstance(error, BehindError):
            self._behind.pop(server.where, None)
            return error
        since = self._behind.setdefault(server.where, time.monotonic())
        patience = self._pipeline.source.failover_seconds
        if time.monotonic() - since < patience:
            return error
        hint = (
            f"It did not catch up within {patience:g} s (source.failover_seconds). Bring the old server back, or one "
            "that has replicated all of it; else start a pipeline of a new name, with a new snapshot."
        )
        return WrongServerError(error.operation, error.object, error.cause, hint)

    def _none(self, errors: dict[str, HeadraceError]) -> HeadraceError:
        """What is said of one server as it is; of several, all of it, to be asked again while one is merely away."""
        if len(errors) == 1:
            return next(iter(errors.values()))
        final = next((error for error in errors.values() if not error.retryable), None)
        waits = next((error for error in errors.values() if error.retryable), None)
        told = "; ".join(f"{where}: {error.cause.rstrip('.')}" for where, error in errors.items())
        if waits is None:
            assert final is not None
            return type(final)(final.operation, final.object, told, final.hint)
        hint = final.hint if final else "Start one of the servers, or correct source.host and source.failover"
        return UnreachableError("connect to", self.title, told, hint)


def try_dump(server: Source, seen: GtidSet, reader: str) -> None:
    """Begins a dump behind the set and ends it. MariaDB alone knows whether its domain's transaction of a number is the
    one that was streamed, or one of its own, and says so here. Raises the typed errors of a dump."""
    connection, packets = BinlogConnection(server, seen, reader), Packets()
    try:
        for chunk in connection.chunks():
            for _ in packets.feed(chunk):
                return
    except ServerAnswerError as error:
        raise connection.answered(error) from None
    finally:
        connection.close()
