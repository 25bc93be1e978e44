"""Rows that wait for their transaction's end, and rows that carry their statement.

Both are rare. The handlers of rows events are exchanged for as long as they last, so that neither costs anything where
there is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from streamer.protocol import events as ev
from streamer.protocol.dispatch import Handlers
from streamer.protocol.held import UNDOABLE, Held, PreparedXa, size
from streamer.protocol.model import Item, RowsBatch
from streamer.protocol.packets import Header
from streamer.protocol.query import statement_text
from streamer.protocol.row_events import COMPRESSED, NEWER, OPERATIONS, PACKED, PARTIAL, RowsEvents
from streamer.protocol.unclear import Definitions

RowsHandler = Callable[[bytes, int, int, Header], Sequence[RowsBatch]]
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
        self._odd = bool(self._prepared.open)  # whether the end of this transaction is more than a Commit
        self._text = b""  # the statement, as a JSON string
        self._handlers: Handlers
        both = (False, True)
        self._ways = {(holds, told): self._rows_handlers(holds, told) for holds in both for told in both}

    def _rows_handlers(self, holds: bool, told: bool) -> dict[int, RowsHandler]:
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

    def _let_go(self) -> list[RowsBatch]:
        batches = self._held.batches
        self._held.clear()
        return batches

    def _hold(self, give: RowsHandler, d: bytes, o: int, end: int, header: Header) -> Sequence[RowsBatch]:
        batches, held = give(d, o, end, header), self._held
        if batches:
            self._odd = True
            held.batches += batches
        if self._in_xa:
            held.size += sum(map(size, batches))
            self._prepared.check(held.size)
        else:
            held.size += end - o
            if held.size > UNDOABLE:
                self._way(False, self._told)
                return self._let_go()
        return ()

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
