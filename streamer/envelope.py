"""From a rows batch to the keys and values of its records, as bytes.

In: a batch whose rows are finished JSON. Out: two lists of equal length, in order. What a batch's records have
in common is formatted once a batch; what a table's have in common once a table and binlog file; a row costs one
formatting.

A primary key update is two records: `d` under the old key, `c` under the new one. `row` (in `source` and at the
end of `seq`) counts the records that the rows event has given so far.
"""

from __future__ import annotations

import time

from contract.gtid_places import gtid_of
from streamer.protocol.model import Op, RowsBatch

Records = tuple[list[bytes | None], list[bytes]]

# The images of a row that a template of many rows leaves open.
IMAGES: dict[Op, tuple[bytes, bytes]] = {"c": (b"null", b"%b"), "u": (b"%b", b"%b"), "d": (b"%b", b"null")}
OPS: tuple[Op, ...] = ("c", "u", "d")


def records_of(batch: RowsBatch) -> int:
    """How many records `Envelope.records` gives: a row whose primary key is updated is two."""
    if batch.op != "u":
        return len(batch.rows)
    moved = sum(old != new for old, new in zip(batch.keys[0::2], batch.keys[1::2], strict=True))
    return len(batch.rows) // 2 + moved


class Envelope:
    """The envelopes of one table in one schema version. `db`, `table`: as JSON strings with their quotes.

    `version` (of the connector) and `pipeline` must need no JSON escapes; both are made of letters, digits,
    dots and hyphens.
    """

    def __init__(
        self, version: str, pipeline: str, db: bytes, table: bytes, schema: int, epoch: int,
        connector: str = "mysql",
    ) -> None:  # fmt: skip
        # MariaDB's binlog does not tell which thread changed a row.
        tells_thread = connector != "mariadb"
        self._thread, self._fields = (b"%d", _fields) if tells_thread else (b"null", _fields_but_thread)
        self._connector = f'"version":"{version}","connector":"{connector}","name":"{pipeline}"'.encode()
        self._tables = b'"db":%b,"table":%b' % (db, table)
        self._schema = schema
        self._epoch = epoch
        self._file: str | None = None
        self._server_id = 0
        self._query: bytes | None = None
        self._one: dict[Op, bytes] = {}
        self._many: dict[Op, bytes] = {}

    def records(self, batch: RowsBatch) -> Records:
        """Keys and values of all the batch's records."""
        if batch.file is not self._file or batch.server_id != self._server_id or batch.query is not self._query:
            self._bind(batch)
        if batch.op != "u":
            return self._images(batch)
        return self._update(batch) if len(batch.rows) == 2 else self._updates(batch)

    def _bind(self, batch: RowsBatch) -> None:
        """Makes the templates of a binlog file, which changes rarely, and of a statement, where rows carry it."""
        self._file, self._server_id, self._query = batch.file, batch.server_id, batch.query
        # A percent sign in a name is no field: doubled once for a batch of one, twice for a template of many.
        self._one = {op: self._frame(op, batch, b"%%", b"0") for op in OPS}
        self._many = {op: self._frame(op, batch, b"%%%%", b"%%d") for op in OPS}

    def _frame(self, op: Op, batch: RowsBatch, percent: bytes, row: bytes) -> bytes:
        """Open: the fields of `_fields`. A server has GTIDs, or a place names each of its transactions."""
        gtid = b"null%.0b" if gtid_of(batch.gtid) is None else b'"%b"'
        return (
            b'{"before":%b,"after":%b,"source":{'
            + self._connector
            + b',"ts_ms":%d,"ts_us":%d,"snapshot":"false",'
            + self._tables.replace(b"%", percent)
            + b',"server_id":%d,"gtid":%b,"file":"%b","pos":%%d' % (batch.server_id, gtid, batch.file.encode())
            + b',"row":%b,"thread":%b,"query":' % (row, self._thread)
            + (batch.query or b"null").replace(b"%", percent)
            + b","
            + b'"seq":[%d,%d,%%d,%%d,%b],"schema":%d}' % (self._epoch, batch.file_number, row, self._schema)
            + b',"op":"%b","ts_ms":%%d,"transaction":null}' % op.encode()
        )

    def _images(self, batch: RowsBatch) -> Records:
        rows = batch.rows
        keys: list[bytes | None] = [*batch.keys] or [None] * len(rows)
        if len(rows) == 1:
            old, new = (b"null", rows[0]) if batch.op == "c" else (rows[0], b"null")
            return keys, [self._one[batch.op] % self._fields(old, new, batch)]
        template = self._template(batch.op, batch)
        return keys, [template % (row, n, n) for n, row in enumerate(rows)]

    def _updates(self, batch: RowsBatch) -> Records:
        rows = batch.rows
        before, after = batch.keys[0::2], batch.keys[1::2]
        if before != after:
            return self._moved(batch)
        keys: list[bytes | None] = [*before] or [None] * (len(rows) // 2)
        template = self._template("u", batch)
        pairs = zip(rows[0::2], rows[1::2], strict=True)
        return keys, [template % (old, new, n, n) for n, (old, new) in enumerate(pairs)]

    def _update(self, batch: RowsBatch) -> Records:
        """One row: most transactions of an application are of this kind."""
        key = None
        if batch.keys:
            key, moved_to = batch.keys
            if key != moved_to:
                return self._moved(batch)
        old, new = batch.rows
        return [key], [self._one["u"] % self._fields(old, new, batch)]

    def _moved(self, batch: RowsBatch) -> Records:
        """Updates of which one or more change the primary key. Its delete and its create are one row in the source's
        `row`, as in Debezium, and two in the order tuple."""
        update, delete, create = (self._template(op, batch) for op in ("u", "d", "c"))
        keys: list[bytes | None] = []
        values: list[bytes] = []
        for at in range(0, len(batch.rows), 2):
            old, new = batch.rows[at : at + 2]
            old_key, new_key = batch.keys[at : at + 2]
            n, row = len(values), at // 2
            if old_key == new_key:
                keys.append(old_key)
                values.append(update % (old, new, row, n))
            else:
                keys += (old_key, new_key)
                values += (delete % (old, row, n), create % (new, row, n + 1))
        return keys, values

    def _template(self, op: Op, batch: RowsBatch) -> bytes:
        """With the row's images and, twice, its number left open."""
        return self._many[op] % self._fields(*IMAGES[op], batch)


def _fields(old: bytes, new: bytes, batch: RowsBatch) -> tuple[int | bytes, ...]:
    """The images, and what differs from batch to batch, in the frame's order."""
    return (
        old,
        new,
        batch.ts_ms,
        batch.ts_us,
        batch.gtid.encode(),
        batch.pos,
        batch.thread,
        batch.tx_pos,
        batch.ordinal,
        time.time_ns() // 1_000_000,
    )


def _fields_but_thread(old: bytes, new: bytes, batch: RowsBatch) -> tuple[int | bytes, ...]:
    told = _fields(old, new, batch)
    return (*told[:6], *told[7:])
