"""From a rows batch to the keys and values of its records, as bytes.

In: a batch whose rows are finished JSON. Out: two lists of equal length, in order. What a batch's records have
in common is formatted once a batch; what a table's have in common once a table; a row costs one formatting.

A primary key update is two records: `d` under the old key, `c` under the new one. `row` (in `source` and at the
end of `seq`) counts the records that the rows event has given so far.
"""

from __future__ import annotations

import time

from streamer.protocol.model import Op, RowsBatch

Records = tuple[list[bytes | None], list[bytes]]

# The images of a row that a template of many rows leaves open.
IMAGES: dict[Op, tuple[bytes, bytes]] = {"c": (b"null", b"%b"), "u": (b"%b", b"%b"), "d": (b"%b", b"null")}
OPS: tuple[Op, ...] = ("c", "u", "d")


class Envelope:
    """The envelopes of one table in one schema version. `db`, `table`: as JSON strings with their quotes.

    `version` (of the connector) and `pipeline` must need no JSON escapes; both are made of letters, digits,
    dots and hyphens.
    """

    def __init__(self, version: str, pipeline: str, db: bytes, table: bytes, schema: int) -> None:
        connector = f'"version":"{version}","connector":"mysql","name":"{pipeline}"'.encode()
        tables = b'"db":%b,"table":%b' % (db, table)
        # A percent sign in a name is no field: doubled once for a batch of one, twice for a template of many.
        self._one = {op: _frame(op, connector, tables.replace(b"%", b"%%"), schema) for op in OPS}
        self._many = {op: _frame(op, connector, tables.replace(b"%", b"%%%%"), schema) for op in OPS}

    def records(self, batch: RowsBatch, epoch: int) -> Records:
        """Keys and values of all the batch's records."""
        return self._updates(batch, epoch) if batch.op == "u" else self._images(batch, epoch)

    def _images(self, batch: RowsBatch, epoch: int) -> Records:
        rows = batch.rows
        keys: list[bytes | None] = [*batch.keys] or [None] * len(rows)
        if len(rows) == 1:
            old, new = (b"null", rows[0]) if batch.op == "c" else (rows[0], b"null")
            return keys, [self._single(batch, epoch, old, new)]
        template = self._template(batch.op, batch, epoch)
        return keys, [template % (row, n, n) for n, row in enumerate(rows)]

    def _updates(self, batch: RowsBatch, epoch: int) -> Records:
        rows = batch.rows
        before, after = batch.keys[0::2], batch.keys[1::2]
        if before != after:
            return self._moved(batch, epoch)
        keys: list[bytes | None] = [*before] or [None] * (len(rows) // 2)
        if len(rows) == 2:
            return keys, [self._single(batch, epoch, rows[0], rows[1])]
        template = self._template("u", batch, epoch)
        pairs = zip(rows[0::2], rows[1::2], strict=True)
        return keys, [template % (old, new, n, n) for n, (old, new) in enumerate(pairs)]

    def _moved(self, batch: RowsBatch, epoch: int) -> Records:
        """Updates of which one or more change the primary key."""
        update, delete, create = (self._template(op, batch, epoch) for op in ("u", "d", "c"))
        keys: list[bytes | None] = []
        values: list[bytes] = []
        for at in range(0, len(batch.rows), 2):
            old, new = batch.rows[at : at + 2]
            old_key, new_key = batch.keys[at : at + 2]
            n = len(values)
            if old_key == new_key:
                keys.append(old_key)
                values.append(update % (old, new, n, n))
            else:
                keys += (old_key, new_key)
                values += (delete % (old, n, n), create % (new, n + 1, n + 1))
        return keys, values

    def _single(self, batch: RowsBatch, epoch: int, old: bytes, new: bytes) -> bytes:
        return self._one[batch.op] % (old, new, *_numbers(batch, epoch, b"0"))

    def _template(self, op: Op, batch: RowsBatch, epoch: int) -> bytes:
        """With the row's images and, twice, its number left open."""
        return self._many[op] % (*IMAGES[op], *_numbers(batch, epoch, b"%d"))


def _frame(op: Op, connector: bytes, tables: bytes, schema: int) -> bytes:
    """Open: both images, then the fields of `_numbers`."""
    return (
        b'{"before":%b,"after":%b,"source":{'
        + connector
        + b',"ts_ms":%d,"ts_us":%d,"snapshot":"false",'
        + tables
        + b',"server_id":%d,"gtid":"%b","file":"%b","pos":%d,"row":%b,"thread":%d,"query":null,'
        + b'"seq":[%d,%d,%d,%d,%b],"schema":'
        + b'%d},"op":"%b"' % (schema, op.encode())
        + b',"ts_ms":%d,"transaction":null}'
    )


def _numbers(batch: RowsBatch, epoch: int, row: bytes) -> tuple[int | bytes, ...]:
    return (
        batch.ts_ms,
        batch.ts_us,
        batch.server_id,
        batch.gtid.encode(),
        batch.file.encode(),
        batch.pos,
        row,
        batch.thread,
        epoch,
        batch.file_number,
        batch.tx_pos,
        batch.ordinal,
        row,
        time.time_ns() // 1_000_000,
    )
