"""Exactly-once delivery: a Kafka transaction holds whole MySQL transactions and their checkpoint.

It ends at the first transaction end after PERIOD_SECONDS, at once when the source has nothing more. Nothing is read
while it is committed: so of a stream that is behind it takes longer, up to LONGEST_SECONDS, BATCH_RECORDS or
BATCH_TRANSACTIONS.
Whatever ends it otherwise leaves nothing visible of it: the stream begins anew at its last checkpoint.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from contract.checkpoint import Checkpoint
from streamer.beside import Result
from streamer.checkpoints.kafka import TransactionalCheckpoints
from streamer.delivery import Delivery
from streamer.delivery_errors import StuckError, TransactionLostError
from streamer.errors import HeadraceError
from streamer.kafka.transaction_errors import shared
from streamer.ledger import Ledger
from streamer.outgoing.record import Outgoing
from streamer.patience import Patience
from streamer.protocol.model import Commit
from streamer.sinks.kafka import KAFKA
from streamer.sinks.kafka_transactions import TransactionalKafkaSink
from streamer.watcher import Watcher

PERIOD_SECONDS = 0.1
LONGEST_SECONDS = 1.0
BEHIND_SECONDS = 1.0  # the clocks of the source and of this machine may differ, and MariaDB tells whole seconds
BATCH_RECORDS = 500_000
BATCH_TRANSACTIONS = 10_000  # as many have a commit each where a careful attempt brings what stands before an error
OPEN_SECONDS = 300.0
COMMIT_SECONDS = 1.0  # how long one call waits for the broker; a stop is heard in between
SENT_AGAIN = "Nothing of it is visible; it is read and sent again from the last checkpoint."


class TransactionalWatcher(Watcher):
    """Acknowledged is not durable: the checkpoint moves with the commit of the Kafka transaction."""

    def _released(self, end: Commit) -> None:
        """Makes room in the ledger, no more."""

    def gave_up(self, topic: str, error: object) -> HeadraceError:
        if not shared(error):
            return super().gave_up(topic, error)
        return TransactionLostError(
            "delivering to", f"topic {topic}", f"the Kafka transaction ended: {error}", SENT_AGAIN
        )


class ExactlyOnce(Delivery):
    """`period`: seconds after which a Kafka transaction ends with the MySQL transaction, at least; at 0 each has one,
    until more was sent than one holds at most. `open_seconds`: how long one may wait in the middle of a MySQL
    transaction."""

    def __init__(
        self,
        ledger: Ledger,
        sink: TransactionalKafkaSink,
        checkpoints: TransactionalCheckpoints,
        watcher: TransactionalWatcher,
        patience: Patience,
        stuck_after: float,
        period: float = PERIOD_SECONDS,
        open_seconds: float = OPEN_SECONDS,
    ) -> None:
        super().__init__(ledger, sink, checkpoints, watcher, patience)
        self._transactions = sink
        self._offers = checkpoints
        self._stuck_after = stuck_after
        self._period = period
        self._open_seconds = open_seconds
        self._end: Commit | None = None  # the last transaction end that is not committed
        self._whole = 0  # records up to it
        self._began = 0.0  # monotonic seconds: when the first of them was read
        self._lasts = 0.0  # seconds, from then on
        self._durable = 0  # records up to the last commit
        self._ends = 0  # transactions since then
        self._ending: Checkpoint | None = None  # of the Kafka transaction that is being committed

    def end(self, commit: Commit) -> None:
        super().end(commit)
        if self._end is None:
            self._began, self._lasts = self.now, self._period and self._lasting(commit)
        self._end = commit
        self._whole = self.records
        self._ends += 1
        if self.records > BATCH_RECORDS:
            self._period = max(self._period, PERIOD_SECONDS)
        full = self.records - self._durable >= BATCH_RECORDS or self._ends >= BATCH_TRANSACTIONS
        if full or self.now - self._began >= self._lasts:
            self.commit()

    def _lasting(self, first: Commit) -> float:
        """Seconds that a Kafka transaction of which that one is the first takes: no more than readers wait already."""
        behind = time.time() - first.ts_us / 1_000_000 - BEHIND_SECONDS
        return max(self._period, min(LONGEST_SECONDS, behind))

    def pause(self) -> None:
        if self._end is not None and self.records == self._whole:
            self.commit()

    def beat(self, record: Outgoing) -> None:
        """Visible at once, with the last checkpoint again where there is no newer one."""
        super().beat(record)
        self._whole = self.records
        if self._end is None:
            self._offers.offer(self.watcher.checkpoint)
        self.commit()

    def rest(self, seconds: float) -> None:
        self.pause()
        super().rest(seconds)

    def commit(self) -> None:
        """Between two transactions: returns when all is durable that was sent, and the checkpoint behind it. Raises
        Stopping, TransactionLostError, FencedError, DeliveryError, StuckError."""
        if not self._offered():
            return
        began = time.monotonic()
        while not self._committed(COMMIT_SECONDS):
            self.turn()
            if self.watcher.away_since is not None:
                began = time.monotonic()  # away is not stuck
            elif time.monotonic() - began >= self._stuck_after:
                cause = f"a Kafka transaction has not ended for {self._stuck_after:.0f} s although the broker answers"
                hint = "Look for partitions without a leader, also of __transaction_state, mend them, and start again."
                raise StuckError("delivering to", KAFKA, cause, hint)

    def _offered(self) -> bool:
        """Puts the checkpoint into the Kafka transaction, once. Returns whether there is anything to commit."""
        if self._ending is None and self._end is not None:
            behind = self.watcher.behind(self._end, self.ledger.entered(), self.ledger.entered_events())
            if behind is None and self.records == self._durable:  # nothing but what is read again
                self.watcher.release()
                self._end, self._ends = None, 0
            else:
                self._offers.offer(behind or self.watcher.checkpoint)
        if self._ending is None and not self._offers.settled():
            self._ending = self._offers.send()
        return self._ending is not None

    def _committed(self, seconds: float) -> bool:
        """Whether the broker has committed within the time; may be asked again."""
        try:
            if not self._transactions.commit(seconds):
                return False
        except HeadraceError:
            if (failure := self.ledger.failure) is not None:  # the record's own fault says more
                raise self.watcher.gave_up(*failure) from None
            if self._offers.failure is not None:
                raise self.watcher.gave_up("of the commit log", self._offers.failure) from None
            raise
        assert self._ending is not None
        self._offers.committed()
        self.watcher.checkpoint, self._ending = self._ending, None
        self.watcher.release()
        self._end = None
        self._durable, self._ends = self.records, 0
        return True

    @property
    def holds_back(self) -> bool:
        return self._end is not None and (self.records != self._whole or self.ledger.failure is not None)

    def empty(self) -> None:
        """As the base; raises TransactionLostError in the middle of a transaction, of which another server then sends
        the whole."""
        if self.records != self._whole:
            cause = "another server goes on in the middle of a transaction"
            raise TransactionLostError("delivering to", KAFKA, cause, SENT_AGAIN)
        self.commit()

    def keep(self) -> None:
        """The commit of what is sent next has it."""

    def until_done(self, step: Callable[[], Result], what: str) -> Result:
        """As the base. Where it takes long, what was sent of the transaction is taken back, before the broker gives it
        up: TransactionLostError."""
        until = time.monotonic() + self._open_seconds

        def asked() -> Result:
            try:
                return step()
            except HeadraceError as error:
                if error.retryable and self.records != self._whole and time.monotonic() >= until:
                    raise TransactionLostError("waiting for", what, error.cause, SENT_AGAIN) from None
                raise

        self.pause()
        return super().until_done(asked, what)

    def settle(self) -> None:
        assert self.records == self._whole, "asked between two transactions"
        self.commit()

    def drain(self, seconds: float) -> bool:
        """Commits up to the last transaction's end; in the middle of one what was sent since the last commit is taken
        back. Returns whether nothing was."""
        if self.ledger.failure is not None or self.records != self._whole:
            return False
        until = time.monotonic() + seconds
        try:
            while self._offered() and time.monotonic() < until:
                if self._committed(min(COMMIT_SECONDS, seconds)):
                    return True
        except HeadraceError:
            return False
        return self._ending is None
