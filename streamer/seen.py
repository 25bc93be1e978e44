"""What was delivered before the start, and is read again because an XA transaction was open at the checkpoint."""

from __future__ import annotations

from collections.abc import Callable

from contract.gtid import GtidSet
from contract.sequence import file_number
from streamer.protocol.model import Commit


class Seen:
    """On the server where it was read before, all of it stands before the checkpoint's place (number of the binlog
    file, position). Another server has it under other places, so that the GTIDs tell."""

    def __init__(self, gtids: GtidSet, place: tuple[int, int] | None) -> None:
        self._gtids = gtids
        self._place = place

    def elsewhere(self) -> Seen:
        """The same, where another server goes on."""
        return Seen(self._gtids, None)

    def has(self, number: int, pos: int, gtid: str) -> bool:
        """`number`, `pos`: where the transaction begins."""
        return (number, pos) < self._place if self._place is not None else self._gtids.contains(gtid)

    def over(self, end: Commit, entered: Callable[[], GtidSet]) -> bool:
        """Whether nothing of it comes behind this transaction; `entered`: all that was read."""
        if self._place is not None:
            return not self.has(file_number(end.file), end.tx_pos, end.gtid)
        return not self._gtids.contains(end.gtid) and entered().issuperset(self._gtids)
