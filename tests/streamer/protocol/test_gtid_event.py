from __future__ import annotations

from struct import error

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.gtid import GtidSet
from streamer.protocol.gtid_event import gtid, number, tagged_gtid
from streamer.protocol.gtid_set import decode, encode

UUID = bytes.fromhex("394d1de2e59c11f1bf5f02fc00000001")
TEXT = "394d1de2-e59c-11f1-bf5f-02fc00000001"
# As MySQL 9.7 wrote them: source, number 8; tagged: another source, `tagx`, number 5000000.
PLAIN = bytes.fromhex(
    "00394d1de2e59c11f1bf5f02fc0000000108000000000000000201000000000000000200000000000000172733a2c76006fc140150620100"
)
TAGGED = bytes.fromhex(
    "028a00000002a902a902a902a902ed02ed023103310375037503b903b903b903b903b903b90304076889"
    "0906087461677808000a040c7f392533a2c7600610ad041283120b"
)


def test_a_gtid_and_its_commit_time() -> None:
    assert gtid(PLAIN, 0, len(PLAIN)) == (f"{TEXT}:8", 0x0660C7A2332717)


def test_the_original_servers_commit_time_wins() -> None:
    original = PLAIN[:42] + (0x0660C7A2332717 | 1 << 55).to_bytes(7, "little") + (12345).to_bytes(7, "little") + b"\0\0"
    assert gtid(original, 0, len(original)) == (f"{TEXT}:8", 12345)


def test_an_old_servers_gtid_has_no_time() -> None:
    assert gtid(PLAIN[:42], 0, 42) == (f"{TEXT}:8", 0)


def test_a_tagged_gtid() -> None:
    text, micros = tagged_gtid(TAGGED, 0, len(TAGGED))
    assert text == "aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee:tagx:5000000"
    assert micros == 0x0660C7A2332539


@given(st.integers(0, 2**64 - 1))
def test_numbers_of_variable_length(value: int) -> None:
    size = next((n for n in range(1, 9) if value < 1 << 7 * n), 9)
    ones = (1 << size - 1) - 1
    raw = (value << size | ones).to_bytes(size, "little") if size < 9 else b"\xff" + value.to_bytes(8, "little")
    assert number(raw + b"rest", 0) == (value, size)


def test_a_set_without_tags_is_written_in_the_form_that_every_server_reads() -> None:
    raw = encode(GtidSet.parse(f"{TEXT}:1-5:9"))
    numbers = b"".join(n.to_bytes(8, "little") for n in (2, 1, 6, 9, 10))
    assert raw == (1).to_bytes(8, "little") + UUID + numbers


def test_a_set_with_tags_says_so_in_its_first_and_last_byte() -> None:
    raw = encode(GtidSet.parse(f"{TEXT}:1:tagx:7"))
    assert raw[:8] == b"\x01\x02\x00\x00\x00\x00\x00\x01"
    assert UUID + b"\x00" in raw
    assert UUID + b"\x08tagx" in raw


@pytest.mark.parametrize(
    "text", ["", f"{TEXT}:1-5:9", f"{TEXT}:1:tagx:7,aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee:3-4", f"{TEXT}:1-{2**62}"]
)
def test_a_set_is_read_as_it_is_written(text: str) -> None:
    raw = encode(GtidSet.parse(text))
    assert decode(b"before" + raw + b"behind", 6, 6 + len(raw)) == GtidSet.parse(text)
    for length in range(len(raw)):
        with pytest.raises((ValueError, IndexError, error)):
            decode(raw, 0, length)


def test_an_interval_that_is_none() -> None:
    with pytest.raises(ValueError, match="empty"):
        decode(encode(GtidSet.parse(f"{TEXT}:1-5"))[:-8] + bytes(8), 0, 48)
