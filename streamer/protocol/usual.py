"""The usual transaction, read in one go: GTID, BEGIN, one TABLE_MAP, one rows event, XID.

Nearly all transactions of an application are of this form, and what stands between GTID and rows has the same bytes as
in the one before, but for times, places and the thread: one comparison tells. Whatever is not so, not whole yet or
broken is left to be read event by event, which gives the same items, and says what is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from struct import Struct
from typing import NamedTuple
from zlib import crc32

from streamer.errors import DecodeError
from streamer.protocol import events as ev
from streamer.protocol.boundaries import Transactions, unpack_thread
from streamer.protocol.dispatch import BETWEEN
from streamer.protocol.events import ARTIFICIAL, FRAME, PACKET, SIZE, TYPE, XID
from streamer.protocol.gtid_event import gtid
from streamer.protocol.held import PreparedXa
from streamer.protocol.model import Item, Op
from streamer.protocol.packets import (
    BROKEN,
    CHECKSUM,
    FULL,
    LARGEST,
    RESIDUE,
    SMALLEST,
    WHOLE,
    Header,
    Packets,
    unpack_frame,
)
from streamer.protocol.unclear import Definitions

KEPT = 1_000  # beginnings: of a table in a session's settings
OPS: dict[int, Op] = {ev.WRITE_ROWS: "c", ev.UPDATE_ROWS: "u", ev.DELETE_ROWS: "d"}
BEFORE = 8  # bytes of a body before what stays the same: BEGIN's thread and time, TABLE_MAP's id and flags
ID = 6
NO_MORE = b"\x02\x00"  # in a rows event behind id and flags: the length of a part for more, which has nothing but it
COLUMNS = BEFORE + len(NO_MORE)
XID_SIZE = SMALLEST + 8
XID_PACKET = PACKET + XID_SIZE
SHORTEST = WHOLE + COLUMNS + CHECKSUM + XID_PACKET  # bytes of a rows event and an XID
# Of a packet with one event: its length, the OK byte, the event's type, server and size, its flags.
SAME = "3s x c 4x 9s 4x 2s"
# Of a packet with a rows event: the OK byte, the flags, the table's id, the length of the part for more.
SAME_OF_ROWS = "4x c 17x 2s 6s 2x 2s"
unpack_xid_packet = Struct(FRAME.format + "Q").unpack_from


class Beginning(NamedTuple):
    """BEGIN and TABLE_MAP. `table_map`, `rows`: where, behind the start of BEGIN's packet, the next ones begin. `same`:
    what `unpack` gives of each transaction of the kind. `number`, `shape`: the table's id, and what in its TABLE_MAP
    follows the flags."""

    table_map: int
    rows: int
    unpack: Callable[[bytes, int], tuple[bytes, ...]]
    same: tuple[bytes, ...]
    number: bytes
    shape: bytes


class UsualTransactions(Transactions):
    def __init__(
        self, wanted: Callable[[str, str], bool], prepared: PreparedXa | None, definitions: Definitions | None
    ) -> None:
        super().__init__(wanted, prepared, definitions)
        self._packets = Packets()
        self._last: Beginning | None = None
        self._beginnings: dict[tuple[bytes, bytes], Beginning] = {}

    def _usual(self, d: bytes, o: int, end: int, header: Header) -> Iterable[Item]:
        """Of a GTID, and of all its transaction where that is a usual one."""
        plain = self._state == BETWEEN and self._packets.tail and not (self._odd or self._holds or self._told)
        return (plain and self._whole(d, o, end, header)) or self._gtid_event(gtid, d, o, end, header)

    def _whole(self, d: bytes, o: int, end: int, header: Header) -> tuple[Item, ...]:
        """A usual transaction's; none of another one, of which nothing is changed then. In one piece: a few calls more
        would take back half of what it gains."""
        size = len(d)
        begin = end + CHECKSUM
        known = self._last
        if known is None or size < begin + known.rows + SHORTEST or known.unpack(d, begin) != known.same:
            known = self._another(d, begin)
            if known is None:
                return ()
        rows = begin + known.rows
        event = unpack_frame(d, rows)
        last = rows + PACKET + event[SIZE]
        op = OPS.get(event[TYPE])
        table = self._shapes.get(known.shape)
        if op is None or table is None or table.dropped or last + XID_PACKET > size:
            return ()
        xid = unpack_xid_packet(d, last)
        first, ok, _, kind, _, length, _, flags, number = xid
        columns = rows + WHOLE + COLUMNS
        full = table.full_update if op == "u" else table.full
        row = columns + len(full)
        if (
            event[0] & FULL != event[SIZE] + 1 or event[SIZE] >= LARGEST or d[columns:row] != full
            or kind != XID or length != XID_SIZE or first & FULL != XID_SIZE + 1 or ok or flags & ARTIFICIAL
        ):  # fmt: skip
            return ()
        table_map = begin + known.table_map
        if not (
            crc32(d[begin + PACKET : table_map])
            == crc32(d[table_map + PACKET : rows])
            == crc32(d[rows + PACKET : last])
            == crc32(d[last + PACKET : last + XID_PACKET])
            == RESIDUE
        ):
            return ()
        images: list[bytes] = []
        keys: list[bytes] = []
        try:
            table.decode(d, row, last - CHECKSUM, images.append, keys.append)
        except (DecodeError, *BROKEN):
            return ()
        if op == "u" and len(images) % 2:
            return ()
        name, micros = gtid(d, o, end)
        self._started(name, micros, header)
        (self._thread,) = unpack_thread(d, begin + WHOLE)
        self._tables[known.number] = table
        self._state = BETWEEN
        self._ordinal = 1
        batch = self._batch(op, table, images, keys, event, 0)
        self._packets.header, self._packets.next = xid, last + XID_PACKET
        return batch, self._commit(xid, number)

    def _another(self, d: bytes, at: int) -> Beginning | None:
        """What begins in the packets at `at` and has been read before, event by event. The checksums are not looked
        at."""
        table_map = _end(d, at, (ev.QUERY,))
        rows = _end(d, table_map, (ev.TABLE_MAP,)) if table_map else 0
        if not rows or not _end(d, rows, OPS) or len(d) < rows + SHORTEST:
            return None
        statement = d[at + WHOLE + BEFORE : table_map - CHECKSUM]
        number, shape = d[table_map + WHOLE : table_map + WHOLE + ID], d[table_map + WHOLE + BEFORE : rows - CHECKSUM]
        event = d[rows + WHOLE : rows + WHOLE + COLUMNS]
        plain = event[:ID] == number and event[BEFORE:] == NO_MORE
        if not plain or statement not in self._begins or shape not in self._shapes:
            return None
        key = statement, number + shape
        found = self._beginnings.get(key)
        if found is None or found.unpack(d, at) != found.same:
            if len(self._beginnings) >= KEPT:
                self._beginnings.clear()
            unpack = _form(len(statement), len(shape))
            found = Beginning(table_map - at, rows - at, unpack, unpack(d, at), number, shape)
            self._beginnings[key] = found
        self._last = found
        return found


def _end(d: bytes, at: int, kinds: Iterable[int]) -> int:
    """Of the packet at `at`, where it has one whole event of such a type as it stands in the server's file; else 0."""
    if at + WHOLE > len(d):
        return 0
    first, ok, _, kind, _, size, _, flags = unpack_frame(d, at)
    end = at + PACKET + size
    whole = first & FULL == size + 1 and not ok and SMALLEST + BEFORE <= size < LARGEST and end <= len(d)
    return end if whole and kind in kinds and not flags & ARTIFICIAL else 0


def _form(statement: int, shape: int) -> Callable[[bytes, int], tuple[bytes, ...]]:
    """`statement`, `shape`: their lengths."""
    between = f"{CHECKSUM}x"
    begin, table_map = f"{SAME} {BEFORE}x {statement}s {between}", f"{SAME} 6s 2x {shape}s {between}"
    return Struct(f"<{begin} {table_map} {SAME_OF_ROWS}").unpack_from
