"""A time is found in a binlog of many files, also where the server's clock went back between or within them."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from streamer.errors import PurgedError
from streamer.start.marks import Mark
from streamer.start.search import CLOCK_US, Found
from tests.streamer.start.test_first import Binlog, binlogs, us

MINUTE = 60_000_000
HOUR = 60 * MINUTE


def transactions(binlog: Binlog) -> list[Mark]:
    return [mark for _, marks in binlog.numbered() for mark in marks if mark.gtid]


def streamed(binlog: Binlog, found: Found) -> list[Mark]:
    """As found, and checked: its place is where they begin."""
    behind = [mark for mark in transactions(binlog) if not found.seen.contains(mark.gtid)]
    assert all((mark.file, mark.start) >= found.place for mark in behind)
    if behind:
        assert found.place == (behind[0].file, behind[0].start)
    return behind


def due(binlog: Binlog, at_us: int) -> list[Mark]:
    """The first one of that time or later, and all behind it."""
    marks = transactions(binlog)
    first = next((at for at, mark in enumerate(marks) if mark.from_us >= us(at_us)), len(marks))
    return marks[first:]


@given(binlogs(), st.integers(0, 20_000_000))
def test_everything_committed_at_or_after_it_is_streamed_and_nothing_before(binlog: Binlog, at_us: int) -> None:
    at_us = max(at_us, binlog.files[0][0])
    expected = [mark for mark in transactions(binlog) if mark.from_us >= us(at_us)]
    assert streamed(binlog, binlog.find(at_us, [])) == expected


@st.composite
def clocks_set_back(draw: st.DrawFn) -> Binlog:
    """Files made at whatever times, and transactions that are up to the bound beyond the later one of a file's own time
    and its successor's; in the last file at whatever times."""
    made = draw(st.lists(st.integers(0, 12 * HOUR), min_size=1, max_size=8))
    files = []
    for at, successor in pairwise([*made, 40 * HOUR]):
        commits = st.lists(st.integers(0, max(at, successor) + CLOCK_US), max_size=4)
        files.append((at, draw(commits)))
    return Binlog(files, 0)


@given(clocks_set_back(), st.integers(0, 14 * HOUR))
def test_nothing_of_that_time_or_later_is_passed_by(binlog: Binlog, at_us: int) -> None:
    assert streamed(binlog, binlog.find(at_us, [])) == due(binlog, at_us)


@pytest.mark.parametrize(
    ("files", "first"),
    [
        ([(0, [5 * HOUR, 7 * HOUR]), (6 * HOUR, [6 * HOUR + 1, 9 * HOUR])], ("binlog.000001", 300)),
        ([(0, [HOUR]), (8 * HOUR, [8 * HOUR + 1]), (2 * HOUR, [3 * HOUR]), (4 * HOUR, [])], ("binlog.000002", 200)),
        ([(0, [HOUR]), (3 * HOUR, [6 * HOUR + 5]), (5 * HOUR + 5 * MINUTE, [])], ("binlog.000002", 200)),
    ],
    ids=["from seven to six", "a file made while it was ahead", "within a file, by an hour"],
)
def test_a_clock_that_was_set_back(files: list[tuple[int, list[int]]], first: tuple[str, int]) -> None:
    """At six o'clock and a second: what was committed before the clock went back is of that time or later, too."""
    found = Binlog(files, 0).find(6 * HOUR + 2, [])
    assert found.place == first


def test_little_is_read_of_a_thousand_files() -> None:
    """The time of each file up to the one; the transactions of an hour and a file."""
    binlog = Binlog([(n * MINUTE, [n * MINUTE + 5]) for n in range(1000)], 0)
    probes: list[str] = []
    found = binlog.find(700 * MINUTE, probes)
    assert found.place == ("binlog.000701", 200)
    assert probes == [*(f"binlog.{n:06}" for n in range(1, 642)), "binlog.000640"]


def test_a_purged_beginning_that_was_later_is_refused() -> None:
    """Its clock may have been ahead before it was set back, and what it had is gone."""
    binlog = Binlog([(8 * HOUR, [8 * HOUR + 5]), (2 * HOUR, [3 * HOUR])], 7)
    with pytest.raises(PurgedError, match="what was before is purged"):
        binlog.find(6 * HOUR, [])
