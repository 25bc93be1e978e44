"""What the decoder gives: rows, the end of a transaction, DDL; in binlog order.

A transaction is any number of `RowsBatch` and `Ddl`, then exactly one `Commit`. Rows come as finished
JSON: no Python object is made for a row or a value beyond its bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from contract.schema import Column, TableSchema
from streamer.protocol.server import NEWEST, Server

Op = Literal["c", "u", "d"]
# decode(buffer, start, end, rows.append, keys.append): one call a rows event.
RowDecoder = Callable[[bytes, int, int, Callable[[bytes], None], Callable[[bytes], None]], None]


class TableMap:
    """A table's shape as its TABLE_MAP event told it. One object a shape: the same object comes again
    for as long as the shape stays, so it may be a cache's key (by identity)."""

    __slots__ = (
        "columns",
        "db",
        "decode",
        "dropped",
        "full",
        "full_update",
        "key",
        "partial",
        "schema",
        "source",
        "table",
        "width",
    )

    def __init__(
        self, schema: TableSchema, decode: RowDecoder, source: str, partial: Callable[[], RowDecoder] | None = None,
        hidden: int = 0,
    ) -> None:  # fmt: skip
        self.db: str = schema.db
        self.table: str = schema.table
        self.columns: tuple[Column, ...] = schema.columns
        self.key: tuple[str, ...] = schema.key  # empty without a primary key
        self.schema = schema  # version 0, since None: the receiver numbers it
        self.decode = decode
        # Makes the decoder of PARTIAL_UPDATE_ROWS events.
        self.partial: Callable[[], RowDecoder] = (lambda: decode) if partial is None else partial
        self.dropped: frozenset[Op] = frozenset()  # whose rows the pipeline leaves out
        self.source = source  # the generated Python, for a person to read
        # What a rows event with whole images has before its rows: the number of columns and a bit for each; the
        # bits beyond the last column are set, too.
        width = self.width = len(schema.columns) + hidden  # columns in the binlog
        bits = b"\xff" * ((width + 7) // 8)
        count = bytes((width,)) if width < 0xFB else b"\xfc" + width.to_bytes(2, "little")
        self.full, self.full_update = count + bits, count + bits + bits


class RowsBatch:
    """One rows event.

    `rows`: each row's JSON object in column order, UTF-8, compact; for op `u` flat: before, after, before,
    after. `keys`: the same order and length: the primary key's JSON object in key order; an empty list for
    a table without one. `ts_us`, `ts_ms`: the transaction's commit time, Unix, UTC. `pos`: where the event
    starts in `file`. `file_number`, `tx_pos`, `ordinal`: the middle of the order tuple
    (epoch, file_number, tx_pos, ordinal, row); rows of filtered tables are counted too. `query`: the statement
    that made the rows, as a JSON string, where it is asked for and the server sends it.
    """

    __slots__ = (
        "file", "file_number", "gtid", "keys", "op", "ordinal", "pos", "query", "rows", "server_id", "table", "thread",
        "ts_ms", "ts_us", "tx_pos",
    )  # fmt: skip

    def __init__(
        self, op: Op, table: TableMap, rows: list[bytes], keys: list[bytes], ts_us: int, gtid: str, thread: int,
        server_id: int, file: str, file_number: int, pos: int, tx_pos: int, ordinal: int,
    ) -> None:  # fmt: skip
        self.op: Op = op
        self.table = table
        self.rows = rows
        self.keys = keys
        self.ts_us = ts_us
        self.ts_ms = ts_us // 1000
        self.gtid = gtid
        self.thread = thread
        self.server_id = server_id
        self.file = file
        self.file_number = file_number
        self.pos = pos
        self.tx_pos = tx_pos
        self.ordinal = ordinal
        self.query: bytes | None = None


class Ddl:
    """A statement that is not row data: DDL, GRANT and their like, in a transaction of its own. `db`: the
    session's database, empty without one. `pos`: where the transaction starts. `temporary`: its table is one that its
    session alone sees, whatever table has the name besides. `escapes`: whether a backslash in its texts is one.
    `written_by`: the server whose binlog it is in, as it was then."""

    __slots__ = (
        "db", "escapes", "file", "gtid", "pos", "server_id", "statement", "temporary", "thread", "ts_ms", "ts_us",
        "written_by",
    )  # fmt: skip

    def __init__(
        self, db: str, statement: str, gtid: str, file: str, pos: int, ts_us: int, server_id: int = 0, thread: int = 0,
        temporary: bool = False, escapes: bool = True, written_by: Server = NEWEST,
    ) -> None:  # fmt: skip
        self.db = db
        self.statement = statement
        self.gtid = gtid
        self.file = file
        self.pos = pos
        self.ts_us = ts_us
        self.ts_ms = ts_us // 1000
        self.server_id = server_id
        self.thread = thread
        self.temporary = temporary
        self.escapes = escapes
        self.written_by = written_by


class OpenXa(NamedTuple):
    """An XA transaction that is prepared and has not ended: the GTID under which its rows are in the binlog, and
    the transaction before it in its domain (of MariaDB, empty for its first one)."""

    gtid: str
    before: str


class Commit:
    """The end of a transaction, also of an empty or wholly filtered one. `file`, `pos`: behind its last
    event; a checkpoint may stand here. `xid`: None where the server wrote no XID event (DDL, MyISAM).
    `open_xa`: what a checkpoint here must not contain, in the order in which they were prepared; `read_from`: file and
    position where the first of them begins, None where that is not known. `temporary`: the sessions' temporary tables
    here, as far as statements made them: thread, database, table. `made`: when the server made the file, Unix seconds,
    where the stream goes by places."""

    __slots__ = (
        "file", "gtid", "made", "open_xa", "pos", "read_from", "server_id", "temporary", "ts_ms", "ts_us", "tx_pos",
        "xid",
    )  # fmt: skip

    def __init__(
        self, gtid: str, file: str, pos: int, tx_pos: int, xid: int | None, ts_us: int, server_id: int,
        open_xa: tuple[OpenXa, ...] = (),
    ) -> None:  # fmt: skip
        self.gtid = gtid
        self.file = file
        self.pos = pos
        self.tx_pos = tx_pos
        self.xid = xid
        self.ts_us = ts_us
        self.ts_ms = ts_us // 1000
        self.server_id = server_id
        self.open_xa = open_xa
        self.read_from: tuple[str, int] | None = None
        self.temporary: tuple[tuple[int, str, str], ...] = ()
        self.made = 0


Item = RowsBatch | Ddl | Commit
