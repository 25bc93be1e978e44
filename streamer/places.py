"""Whether what a connection gives first stands behind what was read, as it does while the binlog is still the same one.

A server that was reset or restored, and has its GTIDs again, writes what comes into a new binlog. By GTID the stream
goes on there, but with places that may be less than those of older changes: in one epoch they would sort before them.
"""

from __future__ import annotations

from collections.abc import Iterator

from contract.sequence import file_number
from streamer.protocol import refusals
from streamer.protocol.model import Ddl, Item
from streamer.protocol.position import FIRST, WRAP

# Bytes. Transactions stand one behind the other: where a position beyond 4 GiB is a jump wider than this, it was no
# jump forward but back, in a file that is another one.
GAP = 64 << 20


class Behind:
    """`place`: file and 64-bit position that all is behind which a connection is to give; None where that is not known.
    `holds`: whether nothing is left to be asked."""

    def __init__(self, place: tuple[str, int] | None) -> None:
        self._place = place
        self.holds = place is None

    def first(self, items: Iterator[Item]) -> Iterator[Item]:
        """The items. Raises BegunAnewError in place of the first one, where that stands before."""
        for item in items:
            if not self.holds:
                self._check(item.file, item.pos if isinstance(item, Ddl) else item.tx_pos, item.gtid)
                self.holds = True
            yield item

    def _check(self, file: str, pos: int, gtid: str) -> None:
        assert self._place is not None
        last, reached = self._place
        number, known = file_number(file), file_number(last)
        wrapped = reached > FIRST and pos // WRAP > reached // WRAP and pos - reached >= GAP
        if number < known or (number == known and (pos < reached or wrapped)):
            given = f"{gtid} at {file}:{pos % WRAP if wrapped else pos}"
            raise refusals.begun_anew(f"it gives {given}, though {last}:{reached} was read")
