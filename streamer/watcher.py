"""The watcher: every 0.1 s it releases the ledger's head and offers the checkpoint, and tells away from stuck.

A sink whose other side cannot be reached is waited for. A head that does not move for `stuck_after` seconds although
all of them answer is an error, and so is a record that a sink gave up.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

import structlog

from contract import gtids
from contract.checkpoint import Checkpoint
from contract.gtid import GtidSet
from streamer.checkpoints.port import Checkpoints
from streamer.control.status import Rate, Status
from streamer.delivery_errors import DeliveryError, StuckError
from streamer.errors import HeadraceError
from streamer.health import Health
from streamer.ledger import Ledger
from streamer.protocol.model import Commit
from streamer.sinks.kafka import KAFKA
from streamer.sinks.port import Sink
from streamer.sinks.several import SeveralSinks

log = structlog.get_logger("streamer")
PERIOD_SECONDS = 0.1
QUIET_SECONDS = 1.0  # a head that rests this long makes the watcher ask whether the broker answers
PROBE_EVERY_SECONDS = 2.0
PROBE_SECONDS = 0.5
TOPICS = 1_000  # that a checkpoint, which is written ten times a second, names at most
UNNAMED = (
    "Checkpoints do not name it. When the stream goes on from another server than one that was lost, what was sent "
    "there alone behind the last checkpoint is not looked for; and a table that joins later is not refused for it."
)
FEWER = "Let transforms choose fewer topics: by a header or a key, consumers can choose within one."


class Watcher:
    """`checkpoint`: the last released one, durable or on its way. `healths`: one a sink."""

    def __init__(
        self,
        ledger: Ledger,
        checkpoints: Checkpoints,
        sink: Sink,
        status: Status,
        start: Checkpoint,
        stuck_after: float,
    ) -> None:
        self._ledger = ledger
        self._checkpoints = checkpoints
        self._sink = sink
        self._status = status
        sinks = [lane.sink for lane in sink.lanes] if isinstance(sink, SeveralSinks) else [sink]
        self.healths = [Health(one, status) for one in sinks]
        self._stuck_after = stuck_after
        self.checkpoint = start
        # What was delivered before the start and is read again; all of it counts as delivered until it was.
        self._again: GtidSet | None = gtids.parse(start.seen_set) if start.seen_set else None
        self.rate = Rate()
        self._mark: tuple[int, int] | None = None
        self._moved = self._probed = self._due = time.monotonic()
        self._unnamed = False

    @property
    def away_since(self) -> float | None:
        """Unix seconds: since when a sink's other side does not answer; None while all do."""
        return min((one.away_since for one in self.healths if one.away_since is not None), default=None)

    def turn(self, now: float) -> None:
        """Called as often as one likes; works when it is due. Raises DeliveryError, StuckError."""
        if now < self._due:
            return
        self._due = now + PERIOD_SECONDS
        self.release()
        self.rate.sample(now, self._ledger.events)
        if self._ledger.failure is not None:
            raise self.gave_up(*self._ledger.failure)
        if self._checkpoints.failure is not None:
            raise given_up("of the commit log", self._checkpoints.failure)
        self._watch_checkpoints()
        self._watch_head(now)

    def gave_up(self, topic: str, error: object) -> HeadraceError:
        """What it means that the sink gave a record up."""
        return given_up(topic, error)

    def release(self) -> None:
        """Releases what is acknowledged and offers the checkpoint behind it."""
        end = self._ledger.release()
        if end is not None:
            assert isinstance(end, Commit)
            self._released(end)

    def _released(self, end: Commit) -> None:
        checkpoint = self.behind(end, self._ledger.released, self._ledger.events)
        if checkpoint is not None:
            self.checkpoint = checkpoint
            self._checkpoints.offer(checkpoint)

    def behind(self, end: Commit, released: GtidSet, events: int) -> Checkpoint | None:
        """The checkpoint behind a transaction's end, when all of the set is delivered, rows in all; None where it would
        go back to what is read again for an open XA."""
        delivered = self._delivered(released)
        # An open XA transaction is read again by a later start: its rows are not durable before its commit.
        seen = str(delivered) if end.open_xa or self._again is not None else ""
        checkpoint = self.checkpoint.model_copy(
            update={
                "server_id": end.server_id,
                "file": end.file,
                "pos": end.pos,
                "gtid_set": self._gtid_set(end, released),
                "seen_set": seen,
                "read_from": None if not seen else end.read_from if end.open_xa else (end.file, end.pos),
                "seen_elsewhere": bool(seen) and self.checkpoint.seen_elsewhere,
                "file_made": end.made,
                "temporary": end.temporary,
                "xid": end.xid,
                "ts_ms": end.ts_ms,
                "events": events,
                "written_at": time.time_ns() // 1_000_000,
            }
        )
        return checkpoint if checkpoint.place >= self.checkpoint.place else None

    def _gtid_set(self, end: Commit, released: GtidSet) -> str:
        if self.checkpoint.by_place:
            return ""
        return str(released.without(end.open_xa) if end.open_xa else released)

    def _delivered(self, released: GtidSet) -> GtidSet:
        if self._again is not None and released.issuperset(self._again):
            self._again = None
        return released if self._again is None else released.union(self._again)

    def mark(self, table: str, place: tuple[int, int, int]) -> None:
        """Of the table a change does not reach Kafka, as each checkpoint from now on says. `place`: its
        transaction's."""
        known = self.checkpoint.unequal
        marks = {**known, table: max(place, known.get(table, place))}  # on a replay the earlier ones come again
        self.checkpoint = self.checkpoint.model_copy(update={"unequal": marks})

    def joined(self, tables: Mapping[str, bool], place: tuple[int, int, int]) -> None:
        """Each checkpoint from now on says so: see `Checkpoint.joining`."""
        self.checkpoint = self.checkpoint.joining(tables, place)

    def sends_into(self, topic: str) -> bool:
        """Into a topic that is not a table's own. Returns whether that is new, and each checkpoint from now on says
        so. Of too many the first that none says is told."""
        known = self.checkpoint.topics
        if topic in known:
            return False
        if len(known) >= TOPICS:
            if not self._unnamed:
                self._unnamed = True
                log.warning(
                    "transforms choose more topics than are remembered",
                    remembered=TOPICS, topic=topic, meaning=UNNAMED, next_step=FEWER,
                )  # fmt: skip
            return False
        self.checkpoint = self.checkpoint.model_copy(update={"topics": (*known, topic)})
        return True

    def begin_anew(self, checkpoint: Checkpoint) -> None:
        """Goes on from a checkpoint of the next epoch, when all before it is released."""
        self.checkpoint = checkpoint
        self._checkpoints.offer(checkpoint)

    def _watch_head(self, now: float) -> None:
        head = self._ledger.head()
        mark = (self._ledger.passed, head.pending) if head is not None and head.pending else None
        if mark != self._mark or (mark is None and self._checkpoints.settled()):
            self._mark, self._moved = mark, now
        rests = now - self._moved >= QUIET_SECONDS
        if (rests or self._sink.last_error or self.away_since) and now - self._probed >= PROBE_EVERY_SECONDS:
            self._probe(now)

    def _probe(self, now: float) -> None:
        was_away = self.away_since is not None
        answers = [health.ask(PROBE_SECONDS, self._ledger.depth) for health in self.healths]
        now = self._probed = time.monotonic()
        if was_away or not all(answers):
            self._moved = now  # away is not stuck
        elif now - self._moved >= self._stuck_after:
            raise self._stuck(now - self._moved)

    def _stuck(self, seconds: float) -> StuckError:
        hint = f"Mend {self._sink.title}, and start again: it goes on from the last checkpoint."
        if KAFKA in self._sink.title:
            hint = (
                "Look for partitions without a leader or below min.insync.replicas, mend them, and start again: it "
                "goes on from the last checkpoint."
            )
        return StuckError(
            "delivering to",
            self._sink.title,
            f"the oldest record has waited {seconds:.0f} s for its acknowledgement although "
            f"{'the broker' if self._sink.title == KAFKA else 'each of them'} answers",
            f"{hint} streamer.stuck_after_seconds sets how long is waited.",
        )

    def _watch_checkpoints(self) -> None:
        title = f"the checkpoints in {self._checkpoints.title}"
        self._checkpoints.settled()  # one that is away is tried again
        if not (error := self._checkpoints.last_error):
            if self._status.came_back(title):
                log.info("answers again", was_waiting_for=title)
        elif self._status.wait_for(title):
            log.warning("waiting", waiting_for=title, error=error)


def given_up(topic: str, error: object) -> HeadraceError:
    """The operator's words for a record that the sink gave up; its own where it has some."""
    if isinstance(error, HeadraceError):
        return error
    text = error.str() if hasattr(error, "str") else str(error)
    return DeliveryError(
        "delivering to",
        f"topic {topic}",
        f"the broker gave a record up for good: {text}",
        "Mend the topic (does it exist, is it large enough, may the client write?), then start again: the stream "
        "goes on from the last checkpoint and sends the record again.",
    )
