"""Places that stand for GTIDs: all that begins before one is in the set."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract import gtids
from contract.gtid import GtidSet
from contract.gtid_places import UpTo, gtid_of, name

places = st.tuples(st.integers(1, 1_200_000).map(lambda n: f"my.bin.{n:06d}"), st.integers(4, 1 << 60))


def order(place: tuple[str, int]) -> tuple[int, int]:
    return int(place[0].rpartition(".")[2]), place[1]


@given(places, places)
def test_what_begins_before_the_place_is_in_it(end: tuple[str, int], other: tuple[str, int]) -> None:
    found = UpTo.place(*end)
    assert found.contains(name(*other)) == (order(other) < order(end))
    assert found.issuperset(UpTo.place(*other)) == (order(other) <= order(end))
    assert bool(UpTo.place(*other).subtract(found)) == (order(other) > order(end))
    assert found.union(UpTo.place(*other)).end == max(end, other, key=order)


@given(places)
def test_it_reads_back(end: tuple[str, int]) -> None:
    found = gtids.parse(str(UpTo.place(*end)))
    assert isinstance(found, UpTo)
    assert found.end == end


def test_a_transaction_that_was_added_is_in_it_and_the_next_one_is_not() -> None:
    found = UpTo.place("binlog.000002", 157)
    found.add_all([name("binlog.000002", 157), name("binlog.000002", 400)])
    assert found.contains(name("binlog.000002", 400))
    assert not found.contains(name("binlog.000002", 401))
    found.add(name("binlog.000001", 900))
    assert found.contains(name("binlog.000002", 400)), "it never goes back"
    assert not UpTo()
    assert str(UpTo()) == ""
    assert UpTo.parse("") == UpTo()


def test_it_says_nothing_of_gtids_nor_of_another_servers_files() -> None:
    found, uuid = UpTo.place("binlog.000009", 4), "11111111-1111-1111-1111-111111111111"
    assert not found.contains(name("mysql-bin.000001", 4))
    assert not found.issuperset(GtidSet.parse(f"{uuid}:1"))
    assert gtid_of(f"{uuid}:1") == f"{uuid}:1"
    assert gtid_of(name("binlog.000001", 4)) is None


@pytest.mark.parametrize("text", ["file=binlog,pos=4", "file=binlog.000001", "binlog.000001:4", "file=,pos=1"])
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="names no place"):
        UpTo.parse(text)
