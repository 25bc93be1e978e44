"""What follows where the stream ends by an error: it begins again at the last checkpoint, stands by, or fails."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import structlog

from contract.checkpoint import Checkpoint
from contract.pipeline import Pipeline
from streamer import guarantees, outputs
from streamer.checkpoints.kafka import last as last_checkpoint
from streamer.control.status import Status
from streamer.delivery import Delivery
from streamer.delivery_errors import DeposedError, FencedError, TransactionLostError, TransactionTooLongError
from streamer.election import Election
from streamer.errors import AnonymousError, HeadraceError
from streamer.patience import Patience, Stopping
from streamer.sinks.kafka import KAFKA

log = structlog.get_logger("streamer")
STANDBY_POLL_SECONDS = 0.2
FIRST_SECONDS = 0.25
MAX_SECONDS = 15.0
GOOD_SECONDS = 30.0  # an attempt that held this long was a good one
FENCED_SECONDS = 15.0  # in which another streamer that took the pipeline says so
FENCES = 3  # by time, without getting further, after which it is no accident
NO_FAULT = (Stopping, TransactionLostError, FencedError, DeposedError)  # of what was sent


class Attempts:
    """`attempt`: from the last checkpoint on, until an error or a stop. `careful`: whether the present one commits
    after each transaction. `standing_by`: called each time before another streamer of the pipeline is waited for."""

    def __init__(
        self,
        pipeline: Pipeline,
        status: Status,
        patience: Patience,
        stop: threading.Event,
        attempt: Callable[[], None],
        standing_by: Callable[[], None] = lambda: None,
    ) -> None:
        self._pipeline = pipeline
        self._status = status
        self._patience = patience
        self._stop = stop
        self._attempt = attempt
        self._standing_by = standing_by
        self.careful = False
        self._held_back = False  # whole transactions, by a final error in the one behind them
        self._fences = 0
        self._stood: tuple[int, int, int] | None = None  # the checkpoint's place at the last of them
        self._anonymous: tuple[int, int, int] | None = None  # the checkpoint's place where a GTID was lacking last
        self._half = ""  # the GTID of the transaction in the middle of which the last one ended

    def ended(self, error: Exception, delivery: Delivery, half: str) -> None:
        """The stream of the present attempt ended, in the middle of the transaction `half`; before its drain."""
        self._half = half
        if not isinstance(error, NO_FAULT):
            # Once: an attempt in which each transaction has its own commit brings what stands before the error.
            self._held_back = not self.careful and delivery.holds_back

    def run(self) -> None:
        """Until a stop or a final error. Raises Stopping, HeadraceError."""
        if not self._pipeline.streamer.high_availability:
            return self._active()
        with Election(self._pipeline) as election:
            while True:
                self._stand_by(election)
                self._patience.guard = election.check
                try:
                    return self._active()
                except (FencedError, DeposedError) as error:
                    self._patience.guard = None
                    self._status.note(error)
                    log.warning("not the active streamer any more", error=str(error))

    def _stand_by(self, election: Election) -> None:
        """Returns when this streamer is to be the active one. Raises Stopping."""
        self._standing_by()
        self._status.enter("standby")
        log.info("standing by")
        while not election.elected(STANDBY_POLL_SECONDS):
            self._patience.check()
            if (error := election.error()) is not None:
                raise error
        self._status.enter("starting")
        log.info("elected")

    def _active(self) -> None:
        failures = 0
        while True:
            began = time.monotonic()
            self.careful, self._held_back, self._half = self._held_back, False, ""
            try:
                return self._attempt()
            except TransactionLostError as error:
                failures = 0 if time.monotonic() - began >= GOOD_SECONDS else failures + 1
                self._again(error, min(MAX_SECONDS, FIRST_SECONDS * 2**failures))
            except FencedError as error:
                self._fenced(error)
            except AnonymousError as error:
                self._by_place(error)
            except HeadraceError as error:
                if not self._held_back:
                    raise
                self._again(error, FIRST_SECONDS)

    def _fenced(self, error: FencedError) -> None:
        """Returns where no other streamer has taken the pipeline: the broker shuts out one whose transaction took too
        long, too. Raises it where one has, TransactionTooLongError where that happens without end."""
        self._again(error, FENCED_SECONDS)
        found = self._patience.until_answered(lambda: last_checkpoint(self._pipeline, self._stop.is_set), KAFKA)
        self._patience.check()
        if found is None or found.run != guarantees.RUN:
            raise error
        self._fences = self._fences + 1 if found.place == self._stood else 1
        self._stood = found.place
        if self._fences >= FENCES:
            raise self._too_long(found)

    def _by_place(self, error: AnonymousError) -> None:
        """What comes has no GTID: from the checkpoint the stream goes on by file and position where it can, once."""
        found = self._patience.until_answered(lambda: outputs.position(self._pipeline), "the checkpoint")
        self._patience.check()
        if found is None or found.place == self._anonymous:
            raise error
        self._anonymous = found.place
        self._again(error, FIRST_SECONDS)

    def _again(self, error: HeadraceError, pause: float) -> None:
        self._status.note(error)
        self._status.enter("starting")
        log.warning("beginning again at the last checkpoint", error=str(error), in_seconds=round(pause, 1))
        self._stop.wait(pause)
        self._patience.check()

    def _too_long(self, stood: Checkpoint) -> TransactionTooLongError:
        seconds = self._pipeline.kafka.transaction_timeout_seconds
        return TransactionTooLongError(
            "delivering",
            f"transaction {self._half}" if self._half else f"what stands behind {stood.file}:{stood.pos}",
            f"{FENCES} times the broker gave it up: it was not sent within {seconds} s",
            "Raise kafka.transaction_timeout_seconds (and the broker's transaction.max.timeout.ms), or set "
            "streamer.delivery to at_least_once, then start again.",
        )
