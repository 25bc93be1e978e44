"""Rows that wait for their transaction's end, and rows that carry their statement.

Both are rare, but on MariaDB, where every transaction may yet be rolled back: its first rows wait decoded, the rest of
a large one in a file. The handlers of rows events are exchanged for as long as they last, so that neither costs
anything where there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain

from streamer.protocol import events as ev
from streamer.protocol.dispatch import NEXT, OPEN, Handlers
from streamer.protocol.held import UNDOABLE, Held, PreparedXa, size
from streamer.protocol.model import Item, RowsBatch
from streamer.protocol.packets import Header
from streamer.protocol.query import statement_text
from streamer.protocol.row_events import COMPRESSED, NEWER, OPERATIONS, PACKED, PARTIAL, RowsEvents
from streamer.protocol.spool import Spool, Spooled
from streamer.protocol.unclear import Definitions

RowsHandler = Callable[[bytes, int, int, Header], Sequence[RowsBatch]]
AnyRowsHandler = Callable[[bytes, int, int, Header], Iterable[RowsBatch]]
STATEMENT_END = 0x01  # flag of the last rows event of a statement


class HeldRows(RowsEvents):
    """`_way(holds, told)` says what happens to the rows that come."""

    def __init__(
        self, wanted: Callable[[str, str], bool], prepared: PreparedXa | None, definitions: Definitions | None
    ) -> None:
        super().__init__(wanted, definitions)
        self._prepared = prepared or PreparedXa()
        self._held = Held()
        self._in_xa = self._holds = self._told = False
        # Whether the end of this transaction is more than a Commit.
        self._odd = bool(self._prepared.open or self._prepared.temporary.all())
        self._text = b""  # the statement, as a JSON string
        self._handlers: Handlers
        both = (False, True)
        self._ways = {(holds, told): self._rows_handlers(holds, told) for holds in both for told in both}

    def _rows_handlers(self, holds: bool, told: bool) -> Mapping[int, AnyRowsHandler]:
        plain: dict[int, RowsHandler] = {}
        for op, kinds in OPERATIONS.items():
            plain.update({kind: partial(self._rows, op, kind in NEWER) for kind in kinds})
        for op, kinds in COMPRESSED.items():
            plain.update({kind: partial(self._rows, op, kind in NEWER, form=PACKED) for kind in kinds})
        plain[ev.PARTIAL_UPDATE_ROWS] = partial(self._rows, "u", True, form=PARTIAL)
        if told:
            plain = {kind: partial(self._rows_of, give) for kind, give in plain.items()}
        return {kind: partial(self._hold, give) for kind, give in plain.items()} if holds else plain

    def _way(self, holds: bool, told: bool) -> None:
        if (holds, told) != (self._holds, self._told):
            self._holds, self._told = holds, told
            self._handlers.update(self._ways[holds, told])

    def _let_go(self) -> Iterable[RowsBatch]:
        batches, spool = self._held.batches, self._held.spool
        self._held.spool = None
        self._held.clear()
        return batches if spool is None else chain(batches, self._spooled(spool))

    def _hold(self, give: RowsHandler, d: bytes, o: int, end: int, header: Header) -> Iterable[RowsBatch]:
        held = self._held
        if held.spool is not None:
            return self._spool(held.spool, give, d, o, end, header)
        batches = give(d, o, end, header)
        if batches:
            self._odd = True
            held.batches += batches
        if self._in_xa:
            held.size += sum(map(size, batches))
            self._prepared.check(held.size)
        else:
            held.size += end - o
            if held.size > UNDOABLE:
                return self._spools()
        return ()

    def _spools(self) -> Iterable[RowsBatch]:
        """The rows to come wait in a file; where there is none, they are given while they are read."""
        try:
            self._held.spool = Spool()
        except OSError:
            self._way(False, self._told)
            return self._let_go()
        self._odd = True
        return ()

    def _spool(
        self, spool: Spool, give: RowsHandler, d: bytes, o: int, end: int, header: Header
    ) -> Iterable[RowsBatch]:  # fmt: skip
        """Undecoded, into the file. What has no room in it is given while it is read, and all that was held before."""
        if self._tables[d[o : o + 6]] is None:
            return give(d, o, end, header)
        self._state = NEXT[self._state, "rows"]
        place = self._position
        place.move(header)
        event = Spooled(self._ordinal, place.start, place.pos, header, self._text if self._told else b"", d[o:end])
        given: Iterable[RowsBatch] = ()
        try:
            if spool.size + end - o > self._prepared.limit:
                raise OSError
            spool.add(event)
            self._ordinal += 1
        except OSError:
            self._way(False, self._told)
            given = chain(self._let_go(), self._again(event))
        if self._told and d[o + 6] & STATEMENT_END:
            self._way(self._holds, False)
        return given

    def _spooled(self, spool: Spool) -> Iterator[RowsBatch]:
        """Its rows, at the places where they were read; what comes is where it was."""
        place, state, ordinal = self._position, self._state, self._ordinal
        now = place.start, place.pos
        for event in spool.events():
            yield from self._again(event)
        spool.close()
        self._state, self._ordinal = state, ordinal
        place.start, place.pos = now

    def _again(self, event: Spooled) -> Iterator[RowsBatch]:
        self._state, self._ordinal = OPEN, event.ordinal
        self._position.start, self._position.pos = event.start, event.pos
        header = (*event.header[: ev.SIZE], 0, 0, *event.header[ev.POSITION + 1 :])  # its place is known
        for batch in self._ways[False, False][header[ev.TYPE]](event.body, 0, len(event.body), header):
            if event.text:
                batch.query = event.text
            yield batch

    def _rows_query(self, prefix: int, d: bytes, o: int, end: int, _header: Header) -> Iterable[Item]:
        """The statement whose rows follow. Before it stands one byte in MySQL, none in MariaDB."""
        self._text = statement_text(d[o + prefix : end])
        self._way(self._holds, True)
        return ()

    def _rows_of(self, give: RowsHandler, d: bytes, o: int, end: int, header: Header) -> Sequence[RowsBatch]:
        batches = give(d, o, end, header)
        for batch in batches:
            batch.query = self._text
        if d[o + 6] & STATEMENT_END:
            self._way(self._holds, False)
        return batches
