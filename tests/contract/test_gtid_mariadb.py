"""MariaDB's positions as values."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract import gtids
from contract.gtid import GtidSet
from contract.gtid_mariadb import MariaGtids

Numbers = dict[int, tuple[int, int]]  # domain: (server, sequence)
positions = st.dictionaries(st.integers(0, 4), st.tuples(st.integers(1, 3), st.integers(1, 20)))


def made(numbers: Numbers) -> MariaGtids:
    return MariaGtids.parse(",".join(f"{domain}-{server}-{n}" for domain, (server, n) in numbers.items()))


@given(positions)
def test_text_reads_back_in_the_order_of_domains(numbers: Numbers) -> None:
    found = made(numbers)
    assert str(found) == ",".join(f"{d}-{s}-{n}" for d, (s, n) in sorted(numbers.items()))
    assert str(MariaGtids.parse(str(found))) == str(found) == str(found.copy())
    assert bool(found) == bool(numbers)


@given(positions, positions)
def test_sets_of_what_each_domain_has(one: Numbers, other: Numbers) -> None:
    a, b = made(one), made(other)
    assert a.issuperset(b) == all(d in one and one[d][1] >= n for d, (_, n) in other.items())
    missing = {d for d, (_, n) in one.items() if n > other.get(d, (0, 0))[1]}
    assert [gtid.split("-")[0] for gtid in a.subtract(b).last()] == [str(d) for d in sorted(missing)]
    both = a.union(b)
    assert both.issuperset(a)
    assert both.issuperset(b)
    assert str(a) == str(made(one)), "unchanged"


def test_the_last_one_added_counts() -> None:
    found = MariaGtids.parse("0-1-7")
    found.add_all(["0-1-8", "1-1-1", "0-2-6"])
    assert str(found) == "0-2-6,1-1-1"
    assert found.contains("0-1-6")
    assert not found.contains("0-1-7")
    assert not found.contains("2-1-1")


@pytest.mark.parametrize("text", ["0-1", "0-1-x", "11111111-1111-1111-1111-111111111111:1", "-1-2"])
def test_what_is_no_gtid_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="domain-server-sequence"):
        MariaGtids.parse(text)


def test_a_text_tells_its_kind() -> None:
    assert type(gtids.parse("11111111-1111-1111-1111-111111111111:1-5")) is GtidSet
    assert type(gtids.parse("0-1-5")) is MariaGtids
    assert gtids.parse("0-1-5").issuperset(gtids.parse(""))
    assert not gtids.parse("").issuperset(gtids.parse("0-1-5"))


def test_what_is_left_out_takes_its_domain_back_to_before_the_first_of_it() -> None:
    gtids = MariaGtids.parse("0-1-100,3-1-7")
    assert str(gtids.without([("0-1-60", "0-2-58"), ("0-1-80", "0-1-79")])) == "0-2-58,3-1-7"
    assert str(gtids.without([("3-1-1", "")])) == "0-1-100"
