"""The decoder that goes by file and position: names of transactions, and what it passes by to get to its place."""

from __future__ import annotations

import json
from typing import Any

import pytest

from streamer import by_place
from streamer.by_place import ByPlaceDecoder, FileDecoder
from streamer.errors import BegunAnewError
from streamer.protocol import events as ev
from streamer.protocol.model import Commit, Item, RowsBatch
from streamer.transaction import BinlogDecoder
from tests.streamer.protocol.recording import DUMP, event, packet, packets


def wanted(db: str, table: str) -> bool:
    return True


def shown(items: list[Item]) -> list[Any]:
    return [json.loads(row) for item in items if isinstance(item, RowsBatch) for row in item.rows]


BY_GTID = list(BinlogDecoder(wanted).feed(DUMP))
ENDS = [item for item in BY_GTID if isinstance(item, Commit)]
FILE = ENDS[0].file


PLACES = {(end.file, end.tx_pos) for end in ENDS}


def decoded(dump: bytes, pos: int = 4, made: int = 0) -> list[Item]:
    return list(ByPlaceDecoder(wanted, (FILE, pos), made).feed(dump))


def ends_of(items: list[Item]) -> list[Commit]:
    """Of transactions."""
    return [item for item in items if isinstance(item, Commit) and (item.file, item.tx_pos) in PLACES]


def test_a_transaction_is_named_by_the_place_where_it_begins() -> None:
    found = decoded(DUMP)
    assert shown(found) == shown(BY_GTID)
    ends = ends_of(found)
    assert [end.gtid for end in ends] == [f"file={end.file},pos={end.tx_pos}" for end in ENDS]
    assert {item.gtid for item in found if isinstance(item, RowsBatch)} <= {end.gtid for end in ends}
    assert all(end.made > 0 for end in ends)


def anonymous() -> bytes:
    events = [(one, event(one)) for one in packets()]
    given = [packet(e[:4] + bytes([ev.ANONYMOUS_GTID]) + e[5:]) if e[4] == ev.GTID else one for one, e in events]
    return b"".join(given)


def test_of_a_file_those_without_gtid_are_named_by_their_place() -> None:
    assert [item.gtid for item in FileDecoder(wanted).feed(DUMP)] == [item.gtid for item in BY_GTID]
    found = list(FileDecoder(wanted).feed(anonymous()))
    assert shown(found) == shown(BY_GTID)
    for item, before in zip(found, BY_GTID, strict=True):
        tagged = before.gtid.count(":") == 2  # an event of its own kind
        assert item.gtid == before.gtid if tagged else item.gtid.startswith(f"file={item.file},pos=")


def test_anonymous_transactions_are_read() -> None:
    found = decoded(anonymous())
    assert shown(found) == shown(BY_GTID)
    assert len(ends_of(found)) == len(ENDS)


def test_where_a_file_begins_all_of_before_is_given() -> None:
    found = [item for item in decoded(DUMP) if isinstance(item, Commit) and (item.file, item.tx_pos) not in PLACES]
    assert [end.file for end in found] == sorted({end.file for end in found}), "one a file"
    assert {end.file for end in ENDS} <= {end.file for end in found}
    for end in found:
        assert end.tx_pos < end.pos <= min((one.tx_pos for one in ENDS if one.file == end.file), default=end.pos)
        assert end.gtid == f"file={end.file},pos={end.tx_pos}"


@pytest.mark.parametrize("chunk", [1, 1000, len(DUMP)])
def test_what_stands_before_a_place_beyond_4_gib_is_passed_by(monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    """The command has 32 bits: the dump begins at the file's beginning. Here at each place, as if it were so far."""
    monkeypatch.setattr(by_place, "WRAP", 5)
    places = [(end.file, end.pos) for end in ENDS if end.file == FILE]
    assert len(places) > 5
    for place in places:
        reading = ByPlaceDecoder(wanted, place)
        found = [item for at in range(0, len(DUMP), chunk) for item in reading.feed(DUMP[at : at + chunk])]
        assert [(end.file, end.pos) for end in ends_of(found)] == [
            (end.file, end.pos) for end in ENDS if (end.file, end.tx_pos) >= place
        ]


def test_another_file_of_the_same_name_is_refused() -> None:
    made = next(item.made for item in decoded(DUMP) if isinstance(item, Commit))
    assert shown(decoded(DUMP, made=made)) == shown(BY_GTID)
    with pytest.raises(BegunAnewError, match="is another file than the one that was read under this name"):
        decoded(DUMP, made=made + 1)
