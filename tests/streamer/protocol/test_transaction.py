"""The decoder as a whole on a recorded dump: chunking, broken bytes, states."""

from __future__ import annotations

import re
from collections import Counter
from contextlib import suppress
from itertools import accumulate, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contract.gtid import GtidSet
from contract.gtid_mariadb import MariaGtids
from streamer.errors import (
    BegunAnewError,
    ChecksumError,
    CorruptEventError,
    DecodeError,
    UnknownEventError,
    UnsupportedTransactionError,
)
from streamer.protocol import boundaries
from streamer.protocol import events as ev
from streamer.protocol.filters import Filters
from streamer.protocol.gtid_set import encode
from streamer.protocol.held import Held, PreparedXa
from streamer.protocol.model import Commit, Item, RowsBatch
from streamer.protocol.packets import ServerAnswerError
from streamer.transaction import BinlogDecoder
from tests.streamer.protocol.recording import DUMP, EXPECTED, FOLDER, described, event, packet, packets

CREATED = 19 + 2 + 50  # where a format description says when the server made its file


def decoder() -> BinlogDecoder:
    return BinlogDecoder(lambda db, table: True)


def fed(*chunks: bytes) -> list[Item]:
    reading = decoder()
    return [item for chunk in chunks for item in reading.feed(chunk)]


def test_bytes_at_once() -> None:
    assert list(described(fed(DUMP))) == EXPECTED


def test_bytes_one_at_a_time() -> None:
    assert list(described(fed(*(DUMP[n : n + 1] for n in range(len(DUMP)))))) == EXPECTED


@given(st.lists(st.integers(0, len(DUMP)), max_size=30))
def test_bytes_cut_anywhere(places: list[int]) -> None:
    cuts = [0, *sorted(places), len(DUMP)]
    assert list(described(fed(*(DUMP[a:b] for a, b in pairwise(cuts))))) == EXPECTED


@given(st.binary(max_size=3))
def test_bytes_behind_the_last_event_wait(more: bytes) -> None:
    assert list(described(fed(DUMP + more))) == EXPECTED


def test_a_transaction_ends_in_exactly_one_commit() -> None:
    open_gtid = ""
    for item in fed(DUMP):
        assert not open_gtid or item.gtid == open_gtid
        open_gtid = "" if isinstance(item, Commit) else item.gtid
    assert not open_gtid


def test_the_same_shape_is_the_same_object() -> None:
    tables = [item.table for item in fed(DUMP) if isinstance(item, RowsBatch)]
    assert len({id(table) for table in tables}) == len({(table.db, table.table) for table in tables}) == 2


@pytest.mark.parametrize("name", ["mysql80", "mariadb"])
def test_the_shape_that_a_table_had_before_is_not_kept(name: str) -> None:
    reading = BinlogDecoder(lambda db, table: True, PreparedXa())
    dump = (FOLDER / f"{name}.dump").read_bytes()
    given = {id(item.table): item.table for item in reading.feed(dump) if isinstance(item, RowsBatch)}
    tables = {(table.db, table.table) for table in given.values()}
    assert len(given) > len(tables)
    assert len(reading._shapes) == len(tables)


def test_ids_of_tables_that_are_gone_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boundaries, "IDS", 2)
    reading = decoder()
    for number in range(10):
        reading._tables[number.to_bytes(6, "big")] = None
    given = list(reading.feed(DUMP))
    assert len(reading._tables) <= 2 + len({item.table.table for item in given if isinstance(item, RowsBatch)})
    monkeypatch.undo()
    assert list(described(given)) == list(described(fed(DUMP)))


def test_a_flipped_bit_is_a_checksum_error_and_what_came_before_is_given() -> None:
    broken = packets()
    broken[-3] = broken[-3][:-1] + bytes([broken[-3][-1] ^ 1])
    given_items: list[Item] = []
    with pytest.raises(ChecksumError, match=r"binlog\.\d+:\d+"):
        given_items.extend(decoder().feed(b"".join(broken)))
    assert given_items
    assert list(described(given_items)) == EXPECTED[: len(list(described(given_items)))]


KINDS = [
    n for n, one in enumerate(packets()) if one[9] in (ev.TABLE_MAP, ev.QUERY, ev.GTID, ev.GTID_TAGGED, 30, 31, 32, 40)
]


def test_a_flipped_bit_in_an_event_that_the_server_makes_up_is_a_checksum_error() -> None:
    """The rotation that begins a later file, as every dump begins with one."""
    whole = packets(DUMP)
    rotation = whole[0]
    assert rotation[9] == ev.ROTATE
    later = bytearray(event(rotation))
    later[-1] += 2  # the file behind the dump's last one
    with_checksum = packet(bytes(later))
    assert list(decoder().feed(b"".join((*whole, with_checksum)))), "as it is"
    for place in (-6, 30):  # of the file's name, of its position
        flipped = bytearray(with_checksum)
        flipped[place] ^= 1
        with pytest.raises(ChecksumError):
            list(decoder().feed(b"".join((*whole, flipped))))


@settings(max_examples=800, deadline=None)
@given(st.sampled_from(KINDS), st.lists(st.tuples(st.integers(19, 2000), st.integers(0, 255)), min_size=1, max_size=4))
def test_mutated_events_with_right_checksums_give_typed_errors_only(place: int, changes: list[tuple[int, int]]) -> None:
    dump = packets()
    changed = bytearray(event(dump[place]))
    for offset, byte in changes:
        changed[19 + (offset - 19) % max(1, len(changed) - 19)] = byte
    dump[place] = packet(bytes(changed))
    _typed_errors_only(b"".join(dump))


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(KINDS), st.integers(0, 1000))
def test_truncated_events_with_right_checksums_give_typed_errors_only(place: int, length: int) -> None:
    dump = packets()
    whole = event(dump[place])
    dump[place] = packet(whole[: 19 + length % max(1, len(whole) - 19)])
    _typed_errors_only(b"".join(dump))


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_give_typed_errors_only(noise: bytes) -> None:
    _typed_errors_only(noise)


def _typed_errors_only(dump: bytes) -> None:
    """Any other exception fails the test."""
    with suppress(DecodeError, ServerAnswerError):
        fed(dump)


def with_kind(kind: int, flags: int = 0) -> bytes:
    """The dump with an event of another type before its first transaction."""
    dump = packets()
    first = next(n for n, one in enumerate(dump) if one[9] == ev.GTID)
    head = event(dump[first])[:19]
    made = head[:4] + bytes([kind]) + head[5:17] + flags.to_bytes(2, "little") + b"body"
    return b"".join([*dump[:first], packet(made), *dump[first:]])


def test_an_unknown_event_stops() -> None:
    """Pitfall "An unknown or unsupported event": it is never skipped."""
    with pytest.raises(UnknownEventError, match="type 99"):
        fed(with_kind(99))


def test_an_unknown_event_that_may_be_ignored_is_counted() -> None:
    reading = decoder()
    assert list(described(reading.feed(with_kind(99, ev.MAY_BE_IGNORED)))) == EXPECTED
    assert reading.ignored == {"type 99": 1}


@pytest.mark.parametrize(
    ("kind", "said"), [(ev.INCIDENT, "lost events"), (ev.ANONYMOUS_GTID, "gtid_mode"), (ev.XA_PREPARE, "XA")]
)
def test_a_known_danger_stops_even_if_it_may_be_ignored(kind: int, said: str) -> None:
    with pytest.raises(DecodeError, match=f"{said}.* pipeline of a new name"):
        fed(with_kind(kind, ev.MAY_BE_IGNORED))


def test_a_missing_end_of_a_transaction_stops() -> None:
    dump = [one for one in packets() if one[9] != ev.XID]
    with pytest.raises(UnsupportedTransactionError, match="GTID cannot stand inside a transaction"):
        fed(*dump)


@pytest.mark.parametrize("events", [1, 2, 4])
def test_a_transaction_that_a_crash_cut_off_was_never_committed(events: int) -> None:
    """Of a server that leaves it in its binlog; a rotation leaves none open, and stops."""
    found = packets()
    kinds = [one[5 + 4] for one in found]
    first = next(n for n, kind in enumerate(kinds) if kind == ev.GTID and kinds[n + 3 : n + 4] == [ev.TABLE_MAP])
    second = kinds.index(ev.GTID, first + 1)
    head, cut, rest = found[:first], found[first : first + events], found[second:]
    made, rotated = (
        packet(event(head[1])[:CREATED] + word + event(head[1])[CREATED + 4 :]) for word in (b"when", bytes(4))
    )
    told = list(described(fed(b"".join([*head, *cut, made, *rest]))))
    assert told == list(described(fed(b"".join([*head, *rest]))))
    with pytest.raises(UnsupportedTransactionError, match="new binlog file"):
        fed(b"".join([*head, *cut, rotated]))


def test_rows_without_their_table_map_stop() -> None:
    dump = packets()
    first = next(n for n, one in enumerate(dump) if one[9] == ev.TABLE_MAP)
    del dump[first]
    with pytest.raises(CorruptEventError):
        fed(*dump)


def at(one: bytes, place: int) -> bytes:
    """The packet as if its event ended there."""
    return packet(event(one)[:13] + (place % (1 << 32)).to_bytes(4, "little") + event(one)[17:])


@pytest.mark.parametrize("wanted", [True, False], ids=["followed", "filtered"])
def test_binlog_files_over_4_gib(wanted: bool) -> None:
    """Pitfall "Binlog files over 4 GiB": a transaction of rows events of 1 GB, whose headers hold 32 bits."""
    dump = packets()
    ends = [n for n, one in enumerate(dump) if one[9] == ev.XID]
    first = next(n for n in range(ends[0], 0, -1) if dump[n][9] == ev.GTID)
    rows = next(n for n in range(first, ends[0]) if dump[n][9] in (ev.WRITE_ROWS, ev.UPDATE_ROWS, ev.DELETE_ROWS))
    large = [*dump[first:rows], *[dump[rows]] * 12, *dump[rows + 1 : ends[0] + 1]]
    after = dump[next(n for n in range(ends[0], len(dump)) if dump[n][9] == ev.GTID) : ends[1] + 1]
    reading = BinlogDecoder(lambda db, table: wanted)
    assert list(reading.feed(b"".join(dump[:first]))) is not None
    sizes = [1_000_000_000 if one[9] == dump[rows][9] else len(event(one)) + 4 for one in [*large, *after]]
    places = [reading.pos + size for size in accumulate(sizes)]
    items = [item for one, place in zip([*large, *after], places, strict=True) for item in reading.feed(at(one, place))]
    one, other = (item for item in items if isinstance(item, Commit))
    assert one.pos == places[len(large) - 1] > 2 << 32
    assert other.pos == places[-1]
    assert other.tx_pos == places[len(large)] - len(event(after[0])) - 4
    assert one.tx_pos < other.tx_pos


def test_an_error_packet_is_the_servers_answer() -> None:
    body = b"\xff" + (1236).to_bytes(2, "little") + b"#HY000it is purged"
    with pytest.raises(ServerAnswerError) as error:
        fed(DUMP + len(body).to_bytes(3, "little") + b"\x05" + body)
    assert (error.value.code, error.value.message) == (1236, "it is purged")


def test_rows_of_a_large_event_come_over_several_packets() -> None:
    """A packet of 16 MB - 1 is followed by another one that holds the rest."""
    dump = packets()
    place = next(n for n, one in enumerate(dump) if one[9] == ev.QUERY and b"CREATE TABLE" in one)
    large = packet(event(dump[place]) + b" " * 40_000_000)[4:]
    full = 0xFFFFFF
    parts = [large[n : n + full] for n in range(0, len(large), full)]
    dump[place] = b"".join(len(part).to_bytes(3, "little") + bytes([n]) + part for n, part in enumerate(parts))
    whole = b"".join(dump)
    chunks = [whole[n : n + 262_144] for n in range(0, len(whole), 262_144)]
    lines = [line.rstrip() for line in described(fed(*chunks))]
    assert lines == EXPECTED


def test_a_filtered_table_is_not_decoded() -> None:
    reading = BinlogDecoder(lambda db, table: table == "n")
    lines = list(described(reading.feed(DUMP)))
    assert lines == [line for line in EXPECTED if " t " not in line or line.startswith(("ddl", "commit"))]


def test_kinds_of_events_that_are_left_out_are_counted_and_the_others_keep_their_places() -> None:
    filters = Filters(drops=lambda db, table: frozenset({"update", "delete"} if table == "t" else ()))
    lines = list(described(BinlogDecoder(lambda db, table: table == "t", filters=filters).feed(DUMP)))
    mine = [line for line in EXPECTED if " n " not in line or line.startswith(("ddl", "commit"))]
    left = [line for line in mine if not re.match(r"[ud] ", line)]
    assert lines == left != mine
    rows = Counter(line.split()[0] for line in mine)
    assert filters.as_dict()["tables"] == {"kept.t": {"delete": rows["d"], "update": rows["u"] // 2}}
    assert filters.passed_by > 0


def test_the_end_of_an_xa_that_was_delivered_needs_no_rows_when_it_is_read_again() -> None:
    """Its beginning stands before the oldest XA transaction that is open, from where a start reads."""
    prepared = PreparedXa(seen=MariaGtids.parse("0-1-13"))
    assert prepared.rows(b"X'70',X'',1", "0-1-13") == []
    with pytest.raises(UnsupportedTransactionError):
        prepared.rows(b"X'70',X'',1", "0-1-14")


def test_a_transaction_of_mariadb_that_comes_again_has_the_same_one_before_it() -> None:
    prepared = PreparedXa(behind=MariaGtids.parse("0-1-58,3-1-7"))
    assert prepared.before("0", "0-1-59") == "0-1-58"
    assert prepared.before("0", "0-2-60") == "0-1-59"
    assert prepared.before("0", "0-2-60") == "0-1-59", "a connection was lost in its middle"
    assert prepared.before("3", "3-1-8") == "3-1-7"
    assert prepared.before("4", "4-1-1") == ""


def test_the_first_open_xa_transactions_place_is_known_until_it_ends_or_another_server_goes_on() -> None:
    prepared = PreparedXa()
    for n, place in enumerate([("b.000001", 5 << 32), ("b.000002", 4)]):
        prepared.prepare(b"%d" % n, Held(), f"u:{n}", "", place)
    assert prepared.first == ("b.000001", 5 << 32)
    prepared.end(b"0")
    assert prepared.first == ("b.000002", 4)
    prepared.elsewhere()
    assert prepared.first is None
    assert len(prepared.open) == 1


@pytest.mark.parametrize(("before", "missing"), [("1-5", ""), ("1-3", ""), ("", ""), ("1-7", "6-7")])
def test_a_file_that_begins_behind_transactions_that_were_not_given(before: str, missing: str) -> None:
    """Pitfall "Reset or restored server": MySQL's dump goes on with the next file, and leaves out what is new."""
    uuid = "394d1de2-e59c-11f1-bf5f-02fc00000001"
    beginning, body = packets()[:2], encode(GtidSet.parse(f"{uuid}:{before}" if before else ""))
    made = packet(event(beginning[1])[:4] + bytes((ev.PREVIOUS_GTIDS,)) + event(beginning[1])[5:19] + body)
    reading = BinlogDecoder(lambda db, table: True, taken=lambda: GtidSet.parse(f"{uuid}:1-5"))
    if not missing:
        assert list(reading.feed(b"".join(beginning) + made)) == []
        return
    with pytest.raises(BegunAnewError, match=rf"binlog.0.* begins behind {uuid}:{missing}, which was not given"):
        list(reading.feed(b"".join(beginning) + made))
