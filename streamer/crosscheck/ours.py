"""The product's decoder over a stretch of a live binlog."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

from contract.gtid import GtidSet
from contract.pipeline import Source
from contract.sequence import file_number
from contract.start_at import Place
from streamer import source as server
from streamer.connection import BinlogConnection
from streamer.crosscheck.steps import End, Rows, Statement, Step
from streamer.definitions import Definitions
from streamer.errors import PurgedError
from streamer.protocol.model import Commit, Ddl, Item, RowsBatch
from streamer.protocol.packets import ServerAnswerError
from streamer.start.marks import marks
from streamer.transaction import BinlogDecoder

Wanted = Callable[[str, str], bool]


def items(source: Source, begin: Place, to: Place, wanted: Wanted) -> Iterator[Item]:
    """From the transaction at `begin` to the one that ends at or behind `to`. Raises HeadraceError."""
    taken = seen(source, begin)
    connection = BinlogConnection(source, taken.copy())
    decoder = BinlogDecoder(wanted, definitions=Definitions(source, lambda: taken))
    try:
        for chunk in connection.chunks():
            for item in decoder.feed(chunk):
                yield item
                if isinstance(item, Commit):
                    taken.add(item.gtid)
                    if order(item.file, item.pos) >= order(*to):
                        return
            if order(decoder.file, decoder.pos) >= order(*to) and decoder.between_transactions:
                return
    except ServerAnswerError as error:
        raise connection.answered(error) from None
    finally:
        connection.close()


def seen(source: Source, begin: Place) -> GtidSet:
    """The transactions before `begin`: what an earlier one needs is none of the stretch's business."""
    found = server.before(source, begin.file)
    if found is None:
        hint = "Ask for a stretch of the files that SHOW BINARY LOGS lists."
        raise PurgedError("read", f"binlog file {begin.file}", "the server has no such file", hint)
    for mark in marks(source, begin.file):
        if (mark.file, mark.start) == begin:
            break
        if mark.gtid:
            found.add(mark.gtid)
    return found


def order(file: str, pos: int) -> tuple[int, int]:
    """Places of one server in their order; nothing comes before a decoder's first file is known."""
    return (file_number(file), pos) if file else (-1, 0)


def steps(source: Source, begin: Place, to: Place, wanted: Wanted) -> Iterator[Step]:
    """Of the transactions that begin at `begin` or behind it."""
    for item in items(source, begin, to, wanted):
        if isinstance(item, RowsBatch):
            if order(item.file, item.tx_pos) >= order(*begin):
                yield _rows(item)
        elif isinstance(item, Ddl):
            if order(item.file, item.pos) >= order(*begin):
                yield Statement(item.statement)
        elif order(item.file, item.tx_pos) >= order(*begin):
            yield End(item.gtid, item.xid)


def _rows(batch: RowsBatch) -> Rows:
    table = batch.table
    columns = {column.name: column for column in table.columns}
    images = [json.loads(row) for row in batch.rows]
    return Rows(batch.op, f"{table.db}.{table.table}", tuple(sorted(table.key)), images, columns)
