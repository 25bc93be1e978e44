"""MariaDB's events without a server: what is broken, and what is refused."""

from __future__ import annotations

import zlib
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.gtid_mariadb import MariaGtids
from streamer.errors import BegunAnewError, CorruptEventError, UnsupportedTransactionError
from streamer.protocol import events as ev
from streamer.protocol.held import PreparedXa
from streamer.protocol.mariadb import gtid, gtid_list, plain
from streamer.transaction import BinlogDecoder
from tests.streamer.protocol.recording import event as event_of
from tests.streamer.protocol.recording import packet, packets


def packed(text: bytes, length: int | None = None) -> bytes:
    return b"\x82" + (len(text) if length is None else length).to_bytes(2, "big") + zlib.compress(text)


@given(st.binary(max_size=500))
def test_what_was_compressed_comes_back(text: bytes) -> None:
    body = b"before" + packed(text) + b"behind"
    assert plain(body, 6, len(body) - 6) == text


@pytest.mark.parametrize(
    "body",
    [
        packed(b"text", length=3),
        packed(b"text", length=5),
        packed(b"x" * 60_000, length=10),
        packed(b"text")[:-6],
        b"\x92" + packed(b"text")[1:],
        b"\x02" + packed(b"text")[1:],
        b"\x82\x00\x04not zlib",
    ],
    ids=["short", "long", "bomb", "cut", "another way", "not packed", "garbage"],
)
def test_what_is_broken_is_an_error(body: bytes) -> None:
    with pytest.raises((ValueError, zlib.error)):
        plain(body, 0, len(body))


def test_a_gtid() -> None:
    body = (270).to_bytes(8, "little") + (3).to_bytes(4, "little") + b"\x05" + bytes(6)
    assert gtid(body, 0, 12) == ("3-12-270", 5)


def listed(*gtids: str) -> bytes:
    entries = (map(int, one.split("-")) for one in gtids)
    return pack("<I", len(gtids) | 1 << 29) + b"".join(pack("<IIQ", *entry) for entry in entries)


def test_a_list_of_gtids() -> None:
    body = listed("0-1-14", "3-12-270")
    assert gtid_list(body + b"more", 0, len(body) + 4) == {("0", "1"): 14, ("3", "12"): 270}
    with pytest.raises(ValueError, match="cut off"):
        gtid_list(body, 0, len(body) - 4)


@pytest.mark.parametrize(
    ("before", "gap"),
    [
        (["0-1-14", "5-1-3"], ""),
        (["0-1-13"], ""),  # a file that the server passes by
        (["0-2-900", "0-1-14"], ""),  # another server's number, which may have fallen
        (["7-1-9"], ""),
        (["5-1-3", "0-1-15"], "0-1-15"),
    ],
)
def test_a_file_that_begins_behind_more_than_was_given(before: list[str], gap: str) -> None:
    """Pitfall "Never lose a change silently": a dump that goes on where the binlog was reset leaves out what is new."""
    read = PreparedXa(behind=MariaGtids.parse("0-1-14,5-1-3"))
    body = listed(*before)
    if not gap:
        read.refuse_gap(gtid_list(body, 0, len(body)), "binlog.000002")
        return
    with pytest.raises(BegunAnewError, match=f"binlog.000002 begins behind {gap}, and no more than 0-1-14 was given"):
        read.refuse_gap(gtid_list(body, 0, len(body)), "binlog.000002")


def fed(kind: int, body: bytes, flags: int = 0) -> None:
    """The event behind the recorded dump's beginning, which tells the file and its checksums."""
    beginning = packets()[:2]
    head = event_of(beginning[1])[:19]
    made = packet(head[:4] + bytes((kind,)) + head[5:17] + pack("<H", flags) + body)
    list(BinlogDecoder(lambda db, table: True).feed(b"".join(beginning) + made))


def test_an_encrypted_binlog_is_refused_with_the_reason() -> None:
    with pytest.raises(UnsupportedTransactionError, match=r"START_ENCRYPTION.*encrypted.*encrypt_binlog=OFF"):
        fed(ev.START_ENCRYPTION, b"\x01\x01\x00\x00\x00" + bytes(12))


def test_a_dump_that_gives_an_encrypted_binlog_in_the_clear_says_so_by_the_flag() -> None:
    """As MariaDB 11.8 was seen to send it; 11.4's package lacks the plugin with the keys."""
    fed(ev.START_ENCRYPTION, bytes.fromhex("01 01000000 6ff74ab3817a5a78c0825921"), ev.MAY_BE_IGNORED)


def test_a_cut_gtid_is_no_traceback() -> None:
    with pytest.raises(CorruptEventError):
        fed(ev.MARIADB_GTID, b"\x01")
