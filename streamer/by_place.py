"""The decoder of a server without GTIDs: each transaction is named by the place where it begins.

The dump is asked for by file and position, for which the command has 32 bits: behind a place beyond 4 GiB it gives the
file from its beginning, and what stands before the place is passed by.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from contract.gtid_places import name
from streamer.protocol import events as ev
from streamer.protocol import refusals
from streamer.protocol.dispatch import Handlers
from streamer.protocol.gtid_event import gtid, tagged_gtid
from streamer.protocol.model import Commit, Item
from streamer.protocol.packets import Event, Header, Packets
from streamer.protocol.position import WRAP, Position
from streamer.transaction import BinlogDecoder

# Of no place that is passed by, or such as a reader must know to go on.
KEPT = (ev.ROTATE, ev.FORMAT_DESCRIPTION, ev.HEARTBEAT, ev.HEARTBEAT_V2)


class FileDecoder(BinlogDecoder):
    """Of a binlog file, whoever wrote it: a place names the transactions that have no GTID."""

    def _table(self, statements: bool) -> Handlers:
        handlers = super()._table(statements)
        handlers[ev.ANONYMOUS_GTID] = partial(self._begun, gtid)
        return handlers

    def _begun(
        self, read: Callable[[bytes, int, int], tuple[str, int]], d: bytes, o: int, end: int, header: Header
    ) -> Iterable[Item]:
        self._started("", read(d, o, end)[1], header)
        self._gtid = name(self.file, self._tx_pos)
        return ()


class ByPlaceDecoder(FileDecoder):
    """`behind`: the place (file, 64 bits) that the dump was asked for; `made`: when that file was made, Unix seconds,
    0 where that is not known. `feed` raises BegunAnewError where it is another file. The others: as the base."""

    def __init__(
        self, wanted: Callable[[str, str], bool], behind: tuple[str, int], made: int = 0, **more: Any
    ) -> None:  # fmt: skip
        far = behind[1] >= WRAP
        super().__init__(wanted, behind=None if far else behind, **more)
        self._known = behind[0], made
        self._made = 0
        if far:
            self._packets = PassingBy(self._position, behind)

    def _table(self, statements: bool) -> Handlers:
        """Those that have GTIDs, too: what a set of places holds is told by places."""
        handlers = super()._table(statements)
        handlers[ev.GTID] = partial(self._begun, gtid)
        handlers[ev.GTID_TAGGED] = partial(self._begun, tagged_gtid)
        return handlers

    def _format(self, d: bytes, o: int, end: int, header: Header) -> Iterable[Item]:
        self._made = header[ev.TIMESTAMP]
        file, made = self._known
        if made and file == self.file and made != self._made:
            raise refusals.begun_anew(f"{file} is another file than the one that was read under this name")
        return super()._format(d, o, end, header)

    def _previous_gtids(self, d: bytes, o: int, end: int, header: Header) -> Iterable[Item]:
        """A file begins, and all that stands before it was given: an end of its own, so that to go on needs no older
        file, however long nothing is committed."""
        self._position.move(header)
        self._tx_pos, self._micros = self._position.start, header[ev.TIMESTAMP] * 1_000_000
        self._gtid = name(self.file, self._tx_pos)
        commit = self._commit(header, None)
        return self._odd_end(commit) if self._odd else (commit,)

    def _commit(self, header: Header, xid: int | None) -> Commit:
        commit = super()._commit(header, xid)
        commit.made = self._made
        return commit


class PassingBy(Packets):
    """The events of a dump from the beginning of a file, without those that stand before a place of it."""

    def __init__(self, position: Position, behind: tuple[str, int]) -> None:
        super().__init__()
        self._position = position
        self._behind: tuple[str, int] | None = behind

    def feed(self, chunk: bytes) -> Iterator[Event]:
        for event in super().feed(chunk):
            if self._behind is None or not self._passes(event[3], self._behind):
                yield event

    def _passes(self, header: Header, behind: tuple[str, int]) -> bool:
        if header[ev.TYPE] in KEPT:
            return False
        self._position.move(header)
        if self._position.file != behind[0] or self._position.start >= behind[1]:
            self._behind = None
        return self._behind is not None
