"""What a TABLE_MAP leaves to its reader."""

from __future__ import annotations

import re

import pytest

from streamer.errors import MissingMetadataError, UnsupportedTypeError
from streamer.protocol import events as ev
from streamer.protocol.columns import BOOL, LONG, MAKERS, PLAIN, TYPED_ARRAY, VARCHAR, WIDTHS, YEAR
from streamer.protocol.lengths import lenenc
from streamer.protocol.metadata import _unsigned
from streamer.protocol.model import Item
from streamer.protocol.server import server
from streamer.protocol.table_map import names
from streamer.transaction import BinlogDecoder
from tests.streamer.protocol.recording import EXPECTED, HEADER, described, event, packet, packets

HEAD = HEADER + 8  # behind the table's id and flags
KINDS = (LONG, YEAR, LONG, LONG)


@pytest.mark.parametrize(
    ("version", "signs", "unsigned"),
    [("8.0.15", 0b01000000, [2]), ("9.7.4", 0b01000000, []), ("9.7.4", 0b00100000, [2]), ("8.0.20", 0b00000000, [])],
)
def test_a_year_has_a_sign_only_in_newer_servers(version: str, signs: int, unsigned: list[int]) -> None:
    found = _unsigned(KINDS, bytes((signs,)), server(version), "a.b")
    assert [n for n, bit in found.items() if bit and n != 1] == unsigned


@pytest.mark.parametrize("signs", [0b01000000, 0b00100000, 0b00010000])
def test_where_it_is_not_known_a_doubt_stops(signs: int) -> None:
    with pytest.raises(MissingMetadataError, match=r"rows of a\.b: of a server 8\.0\.20.*YEAR.*Upgrade"):
        _unsigned(KINDS, bytes((signs,)), server("8.0.20"), "a.b")


def of_type(code: int, instead: int = LONG) -> tuple[list[bytes], int]:
    """The dump with another type for the first column of type `instead` of its first table, and the place of that
    TABLE_MAP."""
    dump = packets()
    at = next(n for n, one in enumerate(dump) if one[9] == ev.TABLE_MAP)
    changed = bytearray(event(dump[at]))
    width, codes = lenenc(changed, names(changed, HEAD)[2])
    changed[changed.index(instead, codes, codes + width)] = code
    dump[at] = packet(bytes(changed))
    return dump, at


@pytest.mark.parametrize(
    ("code", "called"),
    [(99, "number 99"), (243, "number 243"), (BOOL, "boolean"), (TYPED_ARRAY, "typed array"), (7, "timestamp (of MyS")],
)
def test_an_unknown_type_stops_the_stream_with_its_name(code: int, called: str) -> None:
    """Type, column, table, file and position; what came before it is given."""
    assert code not in {*PLAIN, *MAKERS, *WIDTHS}
    dump, at = of_type(code)
    place = int.from_bytes(event(dump[at])[13:17], "little") - len(event(dump[at])) - 4
    given: list[Item] = []
    with pytest.raises(UnsupportedTypeError) as caught:
        given.extend(BinlogDecoder(lambda db, table: True).feed(b"".join(dump)))
    told = str(caught.value)
    assert re.match(
        rf"read column id of kept\.t \(TABLE_MAP, binlog\.000006:{place}\): its type, {re.escape(called)}", told
    )
    assert "Exclude the table in the pipeline file" in told
    assert given
    assert list(described(given)) == EXPECTED[: len(given)]


@pytest.mark.parametrize(("code", "called"), [(99, "number 99"), (TYPED_ARRAY, "typed array")])
def test_an_unknown_type_with_metadata_of_its_own_is_named_too(code: int, called: str) -> None:
    dump, _ = of_type(code, VARCHAR)
    with pytest.raises(UnsupportedTypeError, match=rf"read column \S+ of kept\.t \(TABLE_MAP.*its type, {called},"):
        list(BinlogDecoder(lambda db, table: True).feed(b"".join(dump)))


def test_an_unknown_type_of_a_table_left_out_does_not_stop_it() -> None:
    dump, _ = of_type(99)
    found = list(BinlogDecoder(lambda db, table: table != "t").feed(b"".join(dump)))
    assert list(described(found)) == [
        line for line in EXPECTED if line.split()[0] in ("ddl", "commit") or line.split()[2] != "t"
    ]
