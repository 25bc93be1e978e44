"""MariaDB's events without a server: what is broken, and what is refused."""

from __future__ import annotations

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.errors import CorruptEventError, UnsupportedTransactionError
from streamer.protocol import events as ev
from streamer.protocol.mariadb import gtid, plain
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


def fed(kind: int, body: bytes) -> None:
    """The event behind the recorded dump's beginning, which tells the file and its checksums."""
    beginning = packets()[:2]
    head = event_of(beginning[1])[:19]
    made = packet(head[:4] + bytes((kind,)) + head[5:17] + bytes(2) + body)
    list(BinlogDecoder(lambda db, table: True).feed(b"".join(beginning) + made))


def test_an_encrypted_binlog_is_refused_with_the_reason() -> None:
    with pytest.raises(UnsupportedTransactionError, match=r"START_ENCRYPTION.*encrypted.*encrypt_binlog=OFF"):
        fed(ev.START_ENCRYPTION, b"\x01\x01\x00\x00\x00" + bytes(12))


def test_a_cut_gtid_is_no_traceback() -> None:
    with pytest.raises(CorruptEventError):
        fed(ev.MARIADB_GTID, b"\x01")
