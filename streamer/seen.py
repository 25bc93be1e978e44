"""What was delivered before the start, and is read again because an XA transaction was open at the checkpoint."""

from __future__ import annotations

from collections.abc import Callable

from contract.gtid import GtidSet
from contract.gtid_mariadb import MariaGtids
from contract.sequence import file_number
from streamer.protocol import refusals
from streamer.protocol.model import Commit


class Seen:
    """On the server where it was read before, all of it stands before the checkpoint's place (number of the binlog
    file, position), and nothing else. Another server has it under other places, so that the GTIDs tell. They tell on
    MySQL in any case; on MariaDB the numbers of a domain may fall, and the place tells as long as it holds."""

    def __init__(self, gtids: GtidSet, place: tuple[int, int] | None) -> None:
        self._gtids = gtids
        self._place = place
        self._by_place = place is not None and isinstance(gtids, MariaGtids)
        # Of the server that wrote last into each of MariaDB's domains its number, which only grows.
        last = (one.split("-") for one in gtids.last()) if isinstance(gtids, MariaGtids) else ()
        self._reached = {(domain, server): int(sequence) for domain, server, sequence in last}
        self._last: dict[str, str] = {}  # of each of MariaDB's domains the last transaction before the place

    def elsewhere(self) -> Seen:
        """The same, where another server goes on."""
        return Seen(self._gtids, None)

    def has(self, number: int, pos: int, gtid: str) -> bool:
        """`number`, `pos`: where the transaction begins. Raises BegunAnewError where others stand before the place than
        those that were seen."""
        before = self._place is not None and (number, pos) < self._place
        if self._by_place:
            return self._is_before(before, gtid)
        known = self._gtids.contains(gtid)
        if before and not known:
            raise refusals.begun_anew(f"{gtid} was not read, and stands before what was")
        return known

    def _is_before(self, before: bool, gtid: str) -> bool:
        domain, server, sequence = gtid.split("-")
        if before and int(sequence) > self._reached.get((domain, server), int(sequence)):
            raise refusals.begun_anew(f"{gtid} was not read, and stands before what was")
        if before:
            self._last[domain] = gtid
        elif other := [one for one in self._last.values() if not self._gtids.contains(one)]:
            raise refusals.begun_anew(f"{other[0]} was not read, and stands before what was")
        return before

    def over(self, end: Commit, entered: Callable[[], GtidSet]) -> bool:
        """Whether nothing of it comes behind this transaction; `entered`: all that was read."""
        if self._place is not None:
            return not self.has(file_number(end.file), end.tx_pos, end.gtid)
        return not self._gtids.contains(end.gtid) and entered().issuperset(self._gtids)
