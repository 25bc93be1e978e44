"""Values as MariaDB 11.4 wrote them into its binlog, and the texts that it printed for them."""

from __future__ import annotations

import zlib

import pytest

from streamer.protocol.values.compressed import inflated
from streamer.protocol.values.reader import Field
from tests.streamer.protocol.reading import charset, column, wire


def sized(*values: bytes) -> list[bytes]:
    return [bytes((len(value),)) + value for value in values]


def test_a_uuid_is_filled_up_with_zeros() -> None:
    raws = sized(bytes.fromhex("0123456789ab1def8123456789abcd"), b"")
    assert wire(Field(column("uuid"), 1), *raws) == [
        b'"01234567-89ab-1def-8123-456789abcd00"', b'"00000000-0000-0000-0000-000000000000"',
    ]  # fmt: skip


def test_inet4() -> None:
    assert wire(Field(column("inet4"), 1), *sized(b"\x0a\0\0\x01", b"\x01\x02\x03")) == [b'"10.0.0.1"', b'"1.2.3.0"']


@pytest.mark.parametrize(
    ("digits", "text"),
    [
        ("", "::"), ("20010db8" + "00" * 11 + "01", "2001:db8::1"), ("00" * 15 + "01", "::1"),
        ("00" * 10 + "ffff01020304", "::ffff:1.2.3.4"), ("00" * 12 + "01020304", "::1.2.3.4"),
        ("00" * 14 + "ffff", "::ffff"), ("0000002000000020000000000001ffff", "0:20:0:20::1:ffff"),
        ("0001" + "0000" * 2 + "0001" + "0000" * 3 + "0001", "1:0:0:1::1"),
        ("0064ff9b" + "00" * 8 + "01020304", "64:ff9b::102:304"),
    ],
)  # fmt: skip
def test_inet6_as_mariadb_prints_it(digits: str, text: str) -> None:
    assert wire(Field(column("inet6"), 1), *sized(bytes.fromhex(digits))) == [f'"{text}"'.encode()]


@pytest.mark.parametrize("raw", ["8a012c4b4a1a05c40200", "82012c789c4b4a1a05c40200891572d9"])
def test_a_compressed_text_with_and_without_zlibs_header(raw: str) -> None:
    field = Field(column("text"), 2, charset("utf8mb4"), compressed=True)
    packed = bytes.fromhex(raw)
    values = [len(packed).to_bytes(2, "little") + packed, b"\x03\0\0ab", b"\0\0"]
    assert wire(field, *values) == [b'"' + b"b" * 300 + b'"', b'"ab"', b'""']


@pytest.mark.parametrize("length", [299, 301])
def test_a_compressed_value_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(ValueError, match="another length"):
        inflated(b"\x82" + length.to_bytes(2, "big") + zlib.compress(b"b" * 300))


def test_a_value_compressed_in_an_unknown_way_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown way 9"):
        inflated(b"\x9a\x01\x2cxyz")


OLD = {
    ("time", 0): ("0875fe", "-10:11:12"), ("time", 6): ("0000000f423f", "-838:59:59.000001"),
    ("timestamp", 0): ("a0455669", "2026-01-01T10:00:00Z"),
    ("timestamp", 3): ("695645a0007b", "2026-01-01T10:00:00.123Z"),
    ("timestamp", 1): ("695645a001", "2026-01-01T10:00:00.1Z"), ("datetime", 0): ("00" * 8, "0000-00-00 00:00:00"),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "fsp"), OLD)
def test_times_in_the_format_of_before_mariadb_10_1(kind: str, fsp: int) -> None:
    raw, text = OLD[kind, fsp]
    assert wire(Field(column(kind, fsp=fsp), old_format=True), bytes.fromhex(raw)) == [f'"{text}"'.encode()]
