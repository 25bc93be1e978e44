"""The decoder over broken bytes: recorded dumps of each server, mutated, cut, mixed up. A typed error, or the items; no
other exception, no hang, no memory without bounds. And the same items however whole bytes are cut into chunks.

HEADRACE_FUZZ=50 in the environment makes fifty times as many examples.
"""

from __future__ import annotations

import os
import time
import tracemalloc
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from struct import pack

import pytest
import zstandard
from hypothesis import given, settings
from hypothesis import strategies as st

from streamer.errors import DecodeError
from streamer.protocol import events as ev
from streamer.protocol.held import PreparedXa
from streamer.protocol.model import Item
from streamer.protocol.packets import ServerAnswerError
from streamer.transaction import BinlogDecoder
from tests.streamer.protocol.recording import FOLDER, described, event, packet, packets

NAMES = ("mixed", "mysql_ends", "mysql80", "mariadb")
DUMPS = {name: (FOLDER / f"{name}.dump").read_bytes() for name in NAMES}
PACKETS = {name: packets(dump) for name, dump in DUMPS.items()}
TIMES = int(os.environ.get("HEADRACE_FUZZ", "1"))
SECONDS, BYTES = 5.0, 64 << 20  # of one dump of some kilobytes, on a busy machine
any_dump = st.sampled_from(NAMES)


# Of one event, which begins as if 4 GiB of it were to come.
LONG_EVENT = b"\x00" + zstandard.compress(bytes(9) + pack("<I", 0xFFFFFFFF) + bytes(6))


def decoder() -> BinlogDecoder:
    return BinlogDecoder(lambda db, table: True, PreparedXa(), statements=True)


def fed(*chunks: bytes) -> list[Item]:
    reading = decoder()
    return [item for chunk in chunks for item in reading.feed(chunk)]


def said(*chunks: bytes) -> str:
    return "\n".join(described(fed(*chunks)))


def expected(name: str) -> str:
    return Path(FOLDER / f"{name}.expected").read_text().rstrip("\n")


def survived(dump: bytes) -> None:
    """Any exception but the typed ones fails the test, and so does a decoder that takes too long."""
    began = time.process_time()
    with suppress(DecodeError, ServerAnswerError):
        fed(dump)
    assert time.process_time() - began < SECONDS


@pytest.mark.parametrize("name", NAMES)
def test_chunks_of_any_size_give_the_same(name: str) -> None:
    dump = DUMPS[name]
    assert said(dump) == expected(name)
    assert said(*(dump[n : n + 1] for n in range(len(dump)))) == expected(name)
    assert said(dump, b"\x00\x00") == expected(name), "what is not whole yet waits"


@settings(max_examples=40 * TIMES)
@given(any_dump, st.lists(st.integers(0, 10_000), max_size=30), st.binary(max_size=3))
def test_chunks_cut_anywhere_give_the_same(name: str, places: list[int], more: bytes) -> None:
    dump = DUMPS[name]
    cuts = [0, *sorted(place % len(dump) for place in places), len(dump)]
    assert said(*(dump[a:b] for a, b in pairwise(cuts)), more) == expected(name)


changes = st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 255)), min_size=1, max_size=5)


@settings(max_examples=400 * TIMES)
@given(any_dump, st.integers(0, 1000), changes)
def test_mutated_events_with_right_checksums(name: str, place: int, change: list[tuple[int, int]]) -> None:
    dump = [*PACKETS[name]]
    place = 2 + place % (len(dump) - 2)
    changed = bytearray(event(dump[place]))
    for offset, byte in change:
        if len(changed) > 19:
            changed[19 + offset % (len(changed) - 19)] = byte
    dump[place] = packet(bytes(changed))
    survived(b"".join(dump))


@settings(max_examples=150 * TIMES)
@given(any_dump, st.integers(0, 1000), st.integers(0, 4000), st.binary(max_size=40))
def test_events_cut_or_lengthened_with_right_checksums(name: str, place: int, length: int, more: bytes) -> None:
    dump = [*PACKETS[name]]
    place = 2 + place % (len(dump) - 2)
    whole = event(dump[place])
    dump[place] = packet(whole[: 19 + length % (len(whole) - 18)] + more)
    survived(b"".join(dump))


@settings(max_examples=150 * TIMES)
@given(any_dump, st.integers(0, 1000), st.integers(0, 255), st.integers(0, 65535))
def test_events_of_another_type_or_flag(name: str, place: int, kind: int, flags: int) -> None:
    dump = [*PACKETS[name]]
    place = 2 + place % (len(dump) - 2)
    whole = event(dump[place])
    dump[place] = packet(whole[:4] + bytes((kind,)) + whole[5:17] + pack("<H", flags) + whole[19:])
    survived(b"".join(dump))


@settings(max_examples=150 * TIMES)
@given(any_dump, st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), min_size=1, max_size=4))
def test_events_missing_doubled_or_out_of_order(name: str, moves: list[tuple[int, int]]) -> None:
    dump = [*PACKETS[name]]
    for start, end in moves:
        one = dump[2 + start % (len(dump) - 2)]
        if start % 3:
            dump.remove(one)
        if start % 3 != 1:
            dump.insert(2 + end % (len(dump) - 1), one)
    survived(b"".join(dump))


@settings(max_examples=150 * TIMES)
@given(any_dump, changes)
def test_bytes_broken_on_the_way(name: str, change: list[tuple[int, int]]) -> None:
    """Packets' lengths too; a length that is too great waits for bytes that never come."""
    broken = bytearray(DUMPS[name])
    for offset, byte in change:
        broken[offset % len(broken)] = byte
    survived(bytes(broken))


@settings(max_examples=100 * TIMES)
@given(st.binary(max_size=400))
def test_any_bytes(noise: bytes) -> None:
    survived(noise)


@pytest.mark.parametrize(
    ("kind", "body"),
    [(ev.TRANSACTION_PAYLOAD, b""), (ev.TRANSACTION_PAYLOAD, LONG_EVENT), (ev.QUERY_COMPRESSED, b""),
     (ev.WRITE_ROWS_COMPRESSED_V1, b"")],
    ids=["payload", "event in a payload", "query", "rows"],
)  # fmt: skip
def test_a_length_that_lies_takes_no_memory(kind: int, body: bytes) -> None:
    """Compressed bytes that say they are, or become, a gigabyte; or of which an event says it."""
    name = "mariadb" if kind != ev.TRANSACTION_PAYLOAD else "mysql_ends"
    dump = [*PACKETS[name]]
    place = next(n for n, one in enumerate(dump) if one[9] == kind)
    head = event(dump[place])[:19]
    bodies = {
        ev.TRANSACTION_PAYLOAD: b"\x02\x01\x00\x03\x05\xfe\xff\xff\xff\xff\x01\x04\x28\xb5\x2f\xfd\x00" + bytes(12),
        ev.QUERY_COMPRESSED: event(dump[place])[19:45] + b"\x84\x7f\xff\xff\xff" + bytes(20),
        ev.WRITE_ROWS_COMPRESSED_V1: event(dump[place])[19:29] + b"\x84\x7f\xff\xff\xff" + bytes(20),
    }
    dump[place] = packet(head + (body or bodies[kind]))
    tracemalloc.start()
    with pytest.raises(DecodeError):
        fed(b"".join(dump))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < BYTES
