"""What a TABLE_MAP leaves to its reader."""

from __future__ import annotations

import pytest

from streamer.errors import MissingMetadataError
from streamer.protocol.columns import LONG, YEAR
from streamer.protocol.metadata import _unsigned
from streamer.protocol.server import server

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
