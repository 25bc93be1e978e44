"""GTID sets against plain sets of numbers."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.gtid import GtidSet

A, B = "11111111-1111-1111-1111-111111111111", "22222222-2222-2222-2222-222222222222"
SOURCES = (A, B, f"{A}:tag", f"{A}:other_1", f"{B}:tag")
Gtids = set[tuple[str, int]]
gtids = st.sets(st.tuples(st.sampled_from(SOURCES), st.integers(1, 12)), max_size=30)
ranges = st.lists(st.tuples(st.sampled_from(SOURCES), st.integers(1, 30), st.integers(0, 8)), max_size=12)


def made(numbers: Gtids) -> GtidSet:
    result = GtidSet()
    for source, number in numbers:
        result.add(f"{source}:{number}")
    return result


def plain(gtid_set: GtidSet) -> Gtids:
    return {(source, n) for source, first, last in gtid_set for n in range(first, last + 1)}


@given(gtids)
def test_holds_what_was_added(numbers: Gtids) -> None:
    found = made(numbers)
    assert plain(found) == numbers
    assert bool(found) == bool(numbers)
    assert all(found.contains(f"{source}:{n}") == ((source, n) in numbers) for source in SOURCES for n in range(1, 14))


@given(gtids)
def test_text_reads_back(numbers: Gtids) -> None:
    assert GtidSet.parse(str(made(numbers))) == made(numbers)


@given(ranges)
def test_ranges_merge_into_disjoint_sorted_intervals(added: list[tuple[str, int, int]]) -> None:
    found = GtidSet()
    for source, first, more in added:
        found.add_range(source, first, first + more)
    assert plain(found) == {(s, n) for s, first, more in added for n in range(first, first + more + 1)}
    for spans in found.intervals.values():
        assert all(a <= b for a, b in spans)
        assert all(one[1] + 1 < other[0] for one, other in pairwise(spans))


@given(gtids, gtids)
def test_union_difference_and_containment(one: Gtids, other: Gtids) -> None:
    first, second = made(one), made(other)
    assert plain(first.union(second)) == one | other
    assert plain(first.subtract(second)) == one - other
    assert first.issuperset(second) == (one >= other)
    assert (first == second) == (one == other)
    assert plain(first) == one, "operands stay as they are"


@given(gtids)
def test_a_copy_is_its_own(numbers: Gtids) -> None:
    original = made(numbers)
    copy = original.copy()
    copy.add_range(A, 1000, 2000)
    assert plain(original) == numbers


def test_spelling() -> None:
    text = f"{B}:3,\n {A}:1-3:5:tag:7-9:11 , {A.upper()}:4"
    assert str(GtidSet.parse(text)) == f"{A}:1-5:tag:7-9:11,{B}:3"


@pytest.mark.parametrize(
    "text", ["x", A, f"{A}:0", f"{A}:5-3", f"{A}:1-x", f"{A}:-1", "11111111:1", f"{A}:1;{B}:2", f"{A}:²"]
)
def test_what_is_no_set_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        GtidSet.parse(text)


def test_nothing_is_the_empty_set() -> None:
    assert not GtidSet.parse(" \n")
    assert str(GtidSet()) == ""
    assert GtidSet().issuperset(GtidSet())


def test_left_out_of_a_set() -> None:
    gtids = GtidSet.parse(f"{A}:1-100:102")
    assert str(gtids.without([(f"{A}:50", ""), (f"{A}:102", "")])) == f"{A}:1-49:51-100"
    assert str(gtids) == f"{A}:1-100:102"
