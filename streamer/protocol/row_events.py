"""TABLE_MAP and rows events -> batches of rows, each with its place in the transaction that is being read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from streamer.protocol import events as ev
from streamer.protocol import mariadb
from streamer.protocol.dispatch import BETWEEN, NEXT
from streamer.protocol.filters import Filters
from streamer.protocol.images import check_images
from streamer.protocol.model import Item, Op, RowsBatch, TableMap
from streamer.protocol.packets import Header
from streamer.protocol.position import Position
from streamer.protocol.query import Query
from streamer.protocol.server import NEWEST
from streamer.protocol.table_map import names, table_map
from streamer.protocol.unclear import Definitions

SHAPES = 10_000  # table shapes kept compiled
PLAIN, PACKED, PARTIAL = 0, 1, 2  # the forms of rows: as ever, compressed by MariaDB, with differences of JSON


class RowsEvents:
    """What a transaction's rows are of: the tables by their ids, and the transaction as far as it is known."""

    def __init__(self, wanted: Callable[[str, str], bool], definitions: Definitions | None) -> None:
        self._wanted = wanted
        self._definitions = definitions
        self._filters = Filters()
        self._position = Position()
        self._state = BETWEEN
        self._tables: dict[bytes, TableMap | None] = {}  # by the id that rows events use
        self._shapes: dict[bytes, TableMap | None] = {}  # by their TABLE_MAP's bytes
        self._newest: dict[tuple[str, str], bytes] = {}  # of each table, its key there
        self._server = NEWEST
        self._gtid, self._micros, self._thread, self._tx_pos = "", 0, 0, 0
        self._ordinal, self._given = 0, 0  # rows events of this transaction: all, and those of wanted tables

    def _table_map(self, d: bytes, o: int, end: int, header: Header) -> Iterable[Item]:
        shape = d[o + 8 : end]
        try:
            table = self._shapes[shape]
        except KeyError:
            table = self._shape(shape, header)
        self._tables[d[o : o + 6]] = table
        return ()

    def _shape(self, shape: bytes, header: Header) -> TableMap | None:
        db, name, _ = names(shape, 0)
        if len(self._newest) >= SHAPES:
            self._shapes.clear()
            self._newest.clear()
        self._shapes.pop(self._newest.get((db, name), b""), None)  # the table has another shape now
        table = None
        if self._wanted(db, name):
            at = header[ev.TIMESTAMP]
            table = table_map(shape, self._server, self._definitions, at, self._gtid, self._filters.show)
            table.dropped = self._filters.ops(db, name)
        self._shapes[shape] = table
        self._newest[db, name] = shape
        return table

    def _defined_anew(self, read: Query, header: Header) -> None:
        """By a statement: the same TABLE_MAP may stand for other columns now."""
        if self._definitions is not None and self._server.mariadb:
            self._shapes.clear()
            ended = header[ev.TIMESTAMP] + read.seconds
            self._definitions.changed(read.database, read.text(), self._gtid, ended, read.escapes)

    def _rows(
        self, op: Op, newer: bool, d: bytes, o: int, end: int, header: Header, form: int = PLAIN
    ) -> Sequence[RowsBatch]:
        self._state = NEXT[self._state, "rows"]
        ordinal = self._ordinal
        self._ordinal += 1
        table = self._tables[d[o : o + 6]]
        if table is None:
            self._filters.passed_by += 1
            self._position.move(header)  # later, 32 bits would not tell how often a large transaction passed 4 GiB
            return ()
        o += 8 + (d[o + 8] | d[o + 9] << 8 if newer else 0)
        full = table.full_update if op == "u" else table.full
        if d[o : o + len(full)] != full:
            check_images(table, full, d[o : o + len(full)])
        o += len(full)
        decode = table.decode
        if form:
            if form == PACKED:
                d = mariadb.plain(d, o, end)
                o, end = 0, len(d)
            else:
                decode = table.partial()
        rows: list[bytes] = []
        keys: list[bytes] = []
        decode(d, o, end, rows.append, keys.append)
        if op == "u" and len(rows) % 2:
            raise ValueError("an update without its after image")
        if table.dropped and op in table.dropped:
            self._position.move(header)
            self._filters.drop_rows(f"{table.db}.{table.table}", op, len(rows))
            return ()
        return (self._batch(op, table, rows, keys, header, ordinal),)

    def _batch(
        self, op: Op, table: TableMap, rows: list[bytes], keys: list[bytes], header: Header, ordinal: int
    ) -> RowsBatch:
        """Of a rows event that was read."""
        place = self._position
        place.move(header)
        self._given += 1
        return RowsBatch(
            op, table, rows, keys, self._micros, self._gtid, self._thread, header[ev.SERVER_ID], place.file,
            place.number, place.start, self._tx_pos, ordinal,
        )  # fmt: skip


NEWER = (
    ev.WRITE_ROWS, ev.UPDATE_ROWS, ev.DELETE_ROWS, ev.WRITE_ROWS_COMPRESSED, ev.UPDATE_ROWS_COMPRESSED,
    ev.DELETE_ROWS_COMPRESSED,
)  # fmt: skip
COMPRESSED: dict[Op, tuple[int, ...]] = {
    "c": (ev.WRITE_ROWS_COMPRESSED_V1, ev.WRITE_ROWS_COMPRESSED),
    "u": (ev.UPDATE_ROWS_COMPRESSED_V1, ev.UPDATE_ROWS_COMPRESSED),
    "d": (ev.DELETE_ROWS_COMPRESSED_V1, ev.DELETE_ROWS_COMPRESSED),
}
OPERATIONS: dict[Op, tuple[int, ...]] = {
    "c": (ev.WRITE_ROWS_V1, ev.WRITE_ROWS),
    "u": (ev.UPDATE_ROWS_V1, ev.UPDATE_ROWS),
    "d": (ev.DELETE_ROWS_V1, ev.DELETE_ROWS),
}
