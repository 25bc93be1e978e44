"""The rows of a PARTIAL_UPDATE_ROWS event: before images as ever, after images with differences of JSON columns.

Source: MySQL's source documentation, `mysql::binlog::event::Rows_event` and Rows_log_event::unpack_row: an after
image begins with its options, and a bit for each JSON column that says whether it is a difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from contract.schema import TableSchema
from streamer.protocol.compiler import NO_MASKS, Append, Masks, Plans, PlanWriter, covered, reader
from streamer.protocol.lengths import lenenc
from streamer.protocol.model import RowDecoder
from streamer.protocol.values.document import wire
from streamer.protocol.values.patch import patched
from streamer.protocol.values.reader import Field
from streamer.protocol.values.text import escape

PARTIAL_JSON = 1  # of the options


class Document:
    """One JSON column: its document in the before image, and whether the after image has but its differences."""

    def __init__(self) -> None:
        self.differs = False
        self._before = b""

    def before(self, raw: bytes) -> bytes:
        self._before = raw
        return wire(raw)

    def after(self, raw: bytes) -> bytes:
        return escape(patched(self._before, raw)) if self.differs else wire(raw)


def compile_partial(
    schema: TableSchema, fields: Sequence[Field], shown: Sequence[int] | None = None, masks: Masks = NO_MASKS
) -> RowDecoder:
    """As compile_rows' decoder, which it is not for other events."""
    documents = {n: Document() for n, field in enumerate(fields) if field.column.type == "json"}
    readers = [reader(field) for field in fields]
    olds = [replace(one, bound=documents[n].before) if n in documents else one for n, one in enumerate(readers)]
    news = [replace(one, bound=documents[n].after) if n in documents else one for n, one in enumerate(readers)]
    before, after = (Plans(PlanWriter(schema, covered(images, masks), shown)) for images in (olds, news))
    width, json_width = (len(fields) + 7) // 8, (len(documents) + 7) // 8

    def options(d: bytes, o: int) -> int:
        """Notes which documents differ. Gives the offset behind."""
        found, o = lenenc(d, o)
        if found & ~PARTIAL_JSON:
            raise ValueError(f"an after image of unknown options {found:#x}")
        size = json_width if found else 0
        bits = int.from_bytes(d[o : o + size], "little")
        for place, document in enumerate(documents.values()):
            document.differs = bool(bits >> place & 1)
        return o + size

    def decode(d: bytes, o: int, end: int, rows: Append, keys: Append) -> None:
        while o < end:
            n = o + width
            o = options(d, before[d[o:n]](d, n, rows, keys))
            n = o + width
            o = after[d[o:n]](d, n, rows, keys)
        if o != end:
            raise ValueError("the rows do not end where their event does")

    return decode
