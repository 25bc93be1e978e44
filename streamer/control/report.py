"""The status as JSON: what `/status`, the status page, the metrics and `headrace status` show."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

from contract.checkpoint import Checkpoint
from contract.gtid_places import gtid_of
from contract.pipeline import Pipeline, Source
from contract.status import LakeStatus
from streamer import VERSION, joined
from streamer.control.status import Status
from streamer.lake import Lake

if TYPE_CHECKING:
    from streamer.checkpoints.port import Checkpoints
    from streamer.control.lag_bytes import LagBytes
    from streamer.definitions_since import Ahead
    from streamer.follow.file import FileWatch
    from streamer.ledger import Ledger
    from streamer.outgoing.transforming import Transforms
    from streamer.protocol.filters import Filters
    from streamer.sinks.port import Sink
    from streamer.source import Facts
    from streamer.stream import Stream
    from streamer.watcher import Watcher

    Parts = tuple[Facts, Stream, Ledger, Watcher, Checkpoints, Sink]


class Report:
    """Reads the running parts from another thread than theirs; every value may be a moment old. `ahead`: what is
    read of the binlog before its turn; `file`: what is made of the pipeline file since the start; `until`: the GTID set
    at which a oneshot run ends, once it is known."""

    def __init__(self, pipeline: Pipeline, status: Status, mode: str = "continuous") -> None:
        self._pipeline = pipeline
        self._lake = Lake(pipeline)
        self.lag_bytes: LagBytes | None = None
        self._mode = mode
        self.until: str | None = None
        self.status = status
        self._parts: Parts | None = None
        self._read: tuple[Source, Facts] | None = None
        self.filters: Filters | None = None  # what was left out
        self.ahead: Ahead | None = None
        self.file: FileWatch | None = None
        self.transforms: Transforms | None = None  # what they did

    def attach(
        self,
        facts: Facts,
        stream: Stream,
        ledger: Ledger,
        watcher: Watcher,
        checkpoints: Checkpoints,
        sink: Sink,
    ) -> None:
        self._parts = (facts, stream, ledger, watcher, checkpoints, sink)

    def detach(self) -> None:
        """The parts run no more, and what they counted is not what another streamer of the pipeline does."""
        self._parts = self._read = self.filters = self.ahead = None

    def reads(self, source: Source, facts: Facts) -> None:
        """Which of the pipeline's servers is read now."""
        self._read = (source, facts)

    def as_dict(self) -> dict[str, Any]:
        """Times are Unix seconds, `*_ms` Unix milliseconds. Parts that do not run yet are missing."""
        known = {**self.status.as_dict(), "version": VERSION, "pid": os.getpid(), "now": round(time.time(), 3)}
        parts = self._parts  # once: another thread may detach them at any moment
        known["tables"] = self._tables(parts)
        known["mode"] = {"kind": self._mode, "until": self.until}
        if parts is None:
            return known
        facts, stream, ledger, watcher, checkpoints, sink = parts
        server, facts = self._read or (self._pipeline.source, facts)
        released, durable = watcher.checkpoint, checkpoints.durable
        return {
            **known,
            "position": _positions(stream, released),
            "gtid_set": released.gtid_set,
            "events": {"released": ledger.events, "tables": stream.router.counts()},
            "transactions_read": stream.transactions,
            "bytes_sent": stream.delivery.bytes,
            "lag_seconds": lag_seconds(stream, ledger, released.ts_ms),
            "lag_bytes": self.lag_bytes and self.lag_bytes.latest(server, *_delivered(stream, ledger, released)),
            "rate_events_per_second": round(watcher.rate.value(), 1),
            "queue": _queue(ledger),
            "sink": {
                "title": sink.title,
                "healthy": watcher.away_since is None,
                "away_since": watcher.away_since,
                "last_error": sink.last_error or None,
            },
            "sinks": _sinks(self._pipeline, sink, watcher, ledger),
            "checkpoints": {"title": checkpoints.title, "last_error": checkpoints.last_error or None},
            "source": {
                "host": server.host,
                "port": server.port,
                "connected": stream.connected,
                "reconnects": stream.reconnects,
                "server_uuid": facts.server_uuid,
                "server_version": facts.version,
                "reading_ahead_for": (self.ahead and self.ahead.reading_for) or None,
            },
            "checkpoint": durable
            and {
                **durable.model_dump(include={"epoch", "file", "pos", "gtid_set", "ts_ms", "events", "written_at"}),
                "age_seconds": round(time.time() - durable.written_at / 1000, 3),
            },
            "ignored_events": stream.ignored,
            "filtered": self.filters.as_dict() if self.filters else {},
            "transformed": self.transforms.as_dict() if self.transforms else {},
            "put_aside": stream.put_aside,
            "bent": stream.bent,
            "ddl": {"counts": dict(stream.ddl.counts), "last": list(stream.ddl.last)},
            "schemas": stream.router.schemas.latest(),
        }

    def lake(self) -> LakeStatus | None:
        """As its last compaction left it; None where that cannot be read."""
        return self._lake.latest()

    def checkpoint(self) -> Checkpoint | None:
        """The last durable one; None before the first."""
        return self._parts[3].checkpoint if self._parts else None

    def _tables(self, parts: Parts | None) -> dict[str, Any]:
        """Those that are followed. `reload`: why the pipeline file as it is now is not; `without_key`, `changes_only`:
        since this start; `not_yet_snapshotted`: where each joined, as epoch, number of the file, position."""
        pipeline = self.file.pipeline if self.file else self._pipeline
        tables, stream = pipeline.tables, parts[1] if parts else None
        unread = joined.unread(parts[3].checkpoint, self._lake.latest) if parts else {}
        return {
            **tables.noted.model_dump(mode="json"),
            "cascades": list(tables.cascades),
            "pending": self.file is not None and bool(self.file.trouble or self.file.offered),
            "reload": self.file and self.file.trouble,
            "without_key": stream.router.keyless() if stream else [],
            "changes_only": joined.without_rows(pipeline, stream.router.counts()) if stream else [],
            "not_yet_snapshotted": {name: unread[name] for name in joined.told(pipeline, unread)},
        }


def lag_seconds(stream: Stream, ledger: Ledger, released_ts_ms: int) -> float:
    """Since when something may be there that is not released: now minus the last released transaction's commit time, or
    minus when all was last released that the server had, if that was later; 0 while that is so."""
    last = stream.last
    if stream.connected and ledger.depth == 0 and stream.caught_up_at > stream.read_at:
        return 0.0
    released = released_ts_ms if last is None or ledger.depth else max(last.ts_ms, released_ts_ms)
    return max(0.0, round(time.time() - max(released / 1000, stream.complete_at), 3))


def _delivered(stream: Stream, ledger: Ledger, released: Any) -> tuple[str, int]:
    """Up to where everything is; file and position."""
    if ledger.depth or stream.decoder is None or not stream.decoder.file:
        return released.file, released.pos
    return stream.decoder.file, stream.decoder.pos


def _positions(stream: Stream, released: Any) -> dict[str, Any]:
    decoder, last = stream.decoder, stream.last
    return {
        "read": decoder and {"file": decoder.file, "pos": decoder.pos},
        "sent": last and {"file": last.file, "pos": last.pos, "gtid": gtid_of(last.gtid)},
        "released": {"file": released.file, "pos": released.pos, "ts_ms": released.ts_ms},
    }


def _sinks(pipeline: Pipeline, sink: Sink, watcher: Watcher, ledger: Ledger) -> list[dict[str, Any]]:
    """Each one's own health, and what it has not made durable. `lag_seconds`: for how long the oldest of it waits."""
    queue = _queue(ledger)
    alone = [(queue["events"], queue["oldest_age_seconds"])]
    lanes = getattr(sink, "lanes", None)
    waiting = [(lane.waiting, lane.lag_seconds) for lane in lanes] if lanes else alone
    return [
        {
            "type": output.type,
            "title": health.sink.title,
            **({"bootstrap": pipeline.kafka.bootstrap} if output.type == "kafka" else {}),
            "healthy": health.away_since is None,
            "away_since": health.away_since,
            "last_error": health.sink.last_error or None,
            "waiting_events": events,
            "lag_seconds": lag,
        }
        for output, health, (events, lag) in zip(pipeline.sinks, watcher.healths, waiting, strict=True)
    ]


def _queue(ledger: Ledger) -> dict[str, Any]:
    head = ledger.head()
    return {
        "events": ledger.depth,
        "bytes": ledger.size,
        "oldest_age_seconds": round(time.monotonic() - head.entered, 3) if head else 0.0,
        "max_events": ledger.max_events,
        "max_bytes": ledger.max_bytes,
    }
