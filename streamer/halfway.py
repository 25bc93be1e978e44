"""A transaction of which a part was sent when the connection was lost: what comes again of it is passed by.

The same server sends the same events again. Another one may divide the rows into other events, or give the
transactions another order: then what was sent is sent again, as a whole.
"""

from __future__ import annotations

import structlog

from streamer.delivery_errors import WrongServerError
from streamer.envelope import records_of
from streamer.errors import ConnectionLostError
from streamer.protocol.model import Commit, RowsBatch

log = structlog.get_logger("streamer")


class Halfway:
    """`batch`: the last one sent of a transaction whose end has not come; None between transactions. `skips`: whether
    it is being read again."""

    def __init__(self, source: str) -> None:
        self._source = source
        self.batch: RowsBatch | None = None
        self._skip: RowsBatch | None = None  # the last batch that was sent, while its transaction is read again
        self._sent: int | None = None  # records that were sent, where another server gives the rest
        self._reread = 0  # records of them that this connection gave again
        self.skips = False
        self._notes = ("", 0)  # the GTID of a transaction whose end has not come, and how many of its DDL were sent
        self._notes_again = 0  # of them those that are still to be read again

    @property
    def gtid(self) -> str:
        return self.batch.gtid if self.batch is not None else ""

    def connected(self) -> None:
        """A new connection sends again what was not whole."""
        self._reread = 0
        self._notes_again = self._notes[1]
        self._skip = self.batch
        self.skips = self._skip is not None

    def elsewhere(self, sent: int) -> None:
        """Another server goes on; `sent`: how many records of the transaction it is to repeat."""
        if self.batch is not None:
            self._sent = sent

    def again(self, batch: RowsBatch) -> bool:
        """Whether the batch was sent before. Raises ConnectionLostError where this server divides the rows into other
        events: what was sent is forgotten then."""
        if self._skip is None:
            return False
        again = batch.gtid == self._skip.gtid and batch.ordinal <= self._skip.ordinal
        if again and self._sent is not None:
            self._reread += records_of(batch)
            if batch.ordinal == self._skip.ordinal:
                self._divided_alike()
        return again

    def told(self, gtid: str) -> bool:
        """Whether DDL of the transaction that is read now was sent before: the first of them were, wherever they stand
        among its rows."""
        if not self._notes_again or gtid != self._notes[0]:
            return False
        self._notes_again -= 1
        return True

    def note(self, gtid: str) -> None:
        """DDL of the transaction was sent."""
        self._notes = gtid, self._notes[1] + 1 if gtid == self._notes[0] else 1

    def over(self) -> None:
        """A transaction's end was taken in."""
        self.batch = None
        if self._notes[1]:
            self._notes = "", 0
            self._notes_again = 0

    def ended(self, end: Commit) -> None:
        """A transaction's end came while one is read again. Raises ConnectionLostError as `again`, WrongServerError
        where the transaction is not there any more."""
        assert self._skip is not None
        gtid = self._skip.gtid
        if self._sent is not None and end.gtid == gtid:
            self._divided_alike()  # it ended before the event that was sent last
        elif self._sent is not None:
            log.info("another order of transactions", first=end.gtid, sent_again_as_a_whole=gtid)
            self._sent = None
        elif end.gtid != gtid:
            raise WrongServerError(
                "going on in",
                f"transaction {gtid}",
                f"the server sent a part of it before the connection was lost, and now sends {end.gtid} in its place",
                "The server lost committed transactions (a crash without sync_binlog=1, or another server behind the "
                "same address). Start a pipeline of a new name, with a new snapshot.",
            )
        self._skip = None
        self.skips = False

    def _divided_alike(self) -> None:
        sent, self._sent = self._sent, None
        if self._reread != sent:
            self.batch = None
            cause = f"transaction {self._skip and self._skip.gtid} has other events here than on the server before"
            raise ConnectionLostError("going on in", self._source, cause, "It is sent again as a whole")
