"""A usual transaction is read in one go: the same items, errors and state as event by event."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from struct import pack
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from streamer.errors import DecodeError
from streamer.protocol import events as ev
from streamer.protocol.filters import Filters
from streamer.protocol.model import Item, RowsBatch
from streamer.protocol.packets import Header, ServerAnswerError
from streamer.protocol.position import Position
from streamer.transaction import BinlogDecoder
from tests.streamer.protocol.recording import FOLDER, event, packet, packets
from tests.streamer.protocol.test_fuzz import TIMES

TYPE, FLAGS = 9, 22  # offsets in a packet


def transactions(name: str) -> list[list[bytes]]:
    """Of a recorded dump, each as its packets, without the statements of their rows."""
    found: list[list[bytes]] = []
    for one in packets((FOLDER / f"{name}.dump").read_bytes()):
        if one[TYPE] in (ev.GTID, ev.GTID_TAGGED):
            found.append([])
        if found and one[TYPE] not in (ev.ROWS_QUERY, ev.ROTATE, ev.FORMAT_DESCRIPTION, ev.PREVIOUS_GTIDS):
            found[-1].append(one)
    return found


HEAD = packets((FOLDER / "mixed.dump").read_bytes())[:3]
ALL = [*transactions("mixed"), *transactions("mysql_ends"), *transactions("mysql80")]
XID = next(one[-1] for one in ALL if one[-1][TYPE] == ev.XID)
ROWS = (ev.WRITE_ROWS, ev.UPDATE_ROWS, ev.DELETE_ROWS)
# Each rows event in a transaction of its own.
USUAL = [
    [one[0], one[1], table_map, rows, XID]
    for one in ALL
    for table_map, rows in pairwise(one)
    if one[0][TYPE] == ev.GTID and event(one[1]).endswith(b"BEGIN") and rows[TYPE] in ROWS
]
OTHER, DROPPED = "n", "m"  # tables of some of the rows


def stream(chosen: Sequence[list[bytes]]) -> list[bytes]:
    """The transactions one behind the other, as a server gives them: in places of their own, at rising times."""
    given, pos = [*HEAD], 1000
    for n, transaction in enumerate(chosen):
        for one in transaction:
            pos += len(one) - 5
            body = bytearray(event(one))
            body[:4], body[13:17] = pack("<I", 1_790_000_000 + n), pack("<I", pos)
            if one[TYPE] == ev.QUERY:
                body[19:23] = pack("<I", n + 7)  # the thread
            given.append(packet(bytes(body)))
    return given


def facts(item: Item) -> dict[str, Any]:
    found = {name: getattr(item, name) for name in item.__slots__}
    if isinstance(item, RowsBatch):
        found["table"] = item.table.schema, item.table.source
    return found


class EventByEvent(BinlogDecoder):
    def _whole(self, d: bytes, o: int, end: int, header: Header) -> tuple[Item, ...]:
        return ()


def read(
    chunks: Iterable[bytes], statements: bool = False, wanted: bool = True, kind: type[BinlogDecoder] = BinlogDecoder
) -> tuple[Any, ...]:
    """All that can be seen of a decoder that was given these. `wanted`: all; else nothing of one table, and inserts of
    another one are left out."""
    filters = Filters(drops=lambda db, table: {"insert"} if table == DROPPED and not wanted else set())
    decoder = kind(lambda db, table: wanted or table != OTHER, statements=statements, filters=filters)
    items: list[Any] = []
    error = ""
    try:
        for chunk in chunks:
            items.extend(facts(item) for item in decoder.feed(chunk))
    except (DecodeError, ServerAnswerError) as found:
        error = f"{type(found).__name__}: {found}"
    place = [getattr(decoder._position, name) for name in Position.__slots__]
    return items, error, place, decoder.between_transactions, decoder.last_event_ts, filters.as_dict()


def same(dump: Sequence[bytes], more: bytes = b"", statements: bool = False, wanted: bool = True) -> None:
    whole = b"".join(dump) + more
    half = len(whole) // 2
    for chunks in ([whole], [whole[:half], whole[half:]]):
        assert read(chunks, statements, wanted) == read(chunks, statements, wanted, EventByEvent)


def test_transactions_are_read_in_one_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each kind all but the first, which tells what is the same; a table's older shape is forgotten."""
    one_by_one = 0
    general = BinlogDecoder._gtid_event

    def counted(*args: Any) -> Iterable[Item]:
        nonlocal one_by_one
        one_by_one += 1
        return general(*args)

    monkeypatch.setattr(BinlogDecoder, "_gtid_event", counted)
    assert {one[3][TYPE] for one in USUAL} == set(ROWS)
    dump = stream([one for one in USUAL for _ in range(5)])
    items, error, *_ = read([b"".join(dump)])
    assert not error
    assert len(items) == 2 * 5 * len(USUAL)
    assert one_by_one <= len(USUAL)


any_transactions = st.lists(st.sampled_from([*USUAL * 3, *ALL]), min_size=2, max_size=12)
flips = st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 10_000), st.integers(0, 255)), max_size=3)


@settings(max_examples=100 * TIMES)
@given(any_transactions, st.binary(max_size=3), st.booleans(), st.booleans())
def test_any_transactions_give_the_same(chosen: list[list[bytes]], more: bytes, told: bool, wanted: bool) -> None:
    same(stream(chosen), more, statements=told, wanted=wanted)


@settings(max_examples=200 * TIMES)
@given(any_transactions, flips, st.booleans())
def test_changed_bytes_with_right_checksums_give_the_same(
    chosen: list[list[bytes]], changes: list[tuple[int, int, int]], wanted: bool
) -> None:
    """Headers, too, but for the size."""
    dump = stream(chosen)
    for place, offset, byte in changes:
        place = 3 + place % (len(dump) - 3)
        changed = bytearray(event(dump[place]))
        changed[offset % len(changed)] = byte
        dump[place] = packet(bytes(changed))
    same(dump, wanted=wanted)


@settings(max_examples=200 * TIMES)
@given(any_transactions, flips)
@example([USUAL[0]] * 3, [(5, 3, 1)])  # a packet's number in its connection, which nobody checks
def test_bytes_broken_on_the_way_give_the_same(
    chosen: list[list[bytes]], changes: list[tuple[int, int, int]]
) -> None:  # fmt: skip
    """Packets' lengths, too."""
    dump = stream(chosen)
    for place, offset, byte in changes:
        place = 3 + place % (len(dump) - 3)
        changed = bytearray(dump[place])
        changed[offset % len(changed)] = byte
        dump[place] = bytes(changed)
    same(dump)


@pytest.mark.parametrize("kind", range(5), ids=["GTID", "BEGIN", "TABLE_MAP", "rows", "XID"])
def test_each_event_of_another_flag_or_checksum(kind: int) -> None:
    for flag in (ev.ARTIFICIAL, ev.MAY_BE_IGNORED):
        dump = stream([USUAL[0]] * 3)
        changed = bytearray(event(dump[-5 + kind]))
        changed[FLAGS - 5] |= flag
        dump[-5 + kind] = packet(bytes(changed))
        same(dump)
    broken = stream([USUAL[0]] * 3)
    broken[-5 + kind] = broken[-5 + kind][:-1] + bytes((broken[-5 + kind][-1] ^ 1,))
    same(broken)
    assert "CRC32" in read([b"".join(broken)])[1]
