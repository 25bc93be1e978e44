"""Where a pipeline begins in a binlog of many files, whatever stands where; no server is asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from contract.gtid import GtidSet
from streamer import source
from streamer.protocol import events as ev
from streamer.source import Facts
from streamer.start import first as first_start
from streamer.start import search
from streamer.start.marks import Mark
from tests.streamer.fakes import SOURCE, pipeline

BEGAN = 1_800_000_000  # seconds


class Binlog(NamedTuple):
    """Files by when they were made and their transactions' commit times, in microseconds since BEGAN; `purged`: how
    many transactions were before."""

    files: list[tuple[int, list[int]]]
    purged: int

    def numbered(self) -> Iterator[tuple[str, list[Mark]]]:
        number = self.purged
        for at, (made, commits) in enumerate(self.files, 1):
            file, second = f"binlog.{at:06}", made // 1_000_000 * 1_000_000
            found = [Mark(file, 4, ev.FORMAT_DESCRIPTION, "", us(second), us(second + 999_999))]
            for commit in commits:
                number += 1
                start = 100 * (len(found) + 1)
                found.append(Mark(file, start, ev.GTID, f"{SOURCE}:{number}", us(commit), us(commit)))
            yield file, found

    def find(self, at_us: int, probes: list[str]) -> first_start.Found:
        begin = datetime.fromtimestamp(us(at_us) / 1_000_000, UTC)
        with self.served(probes):
            return first_start.find(pipeline(start=begin.isoformat()), self.facts())

    @contextmanager
    def served(self, probes: list[str]) -> Iterator[None]:
        files = dict(self.numbered())
        before = {file: self._before(file) for file in files}

        def marks(_: Any, file: str) -> Iterator[Mark]:
            probes.append(file)
            for name in [name for name in files if name >= file]:
                yield from files[name]

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(source, "files", lambda _: dict.fromkeys(files, 1 << 20))
            patch.setattr(source, "before", lambda _, file: before[file])
            patch.setattr(source, "now", lambda _: datetime.fromtimestamp(BEGAN + 10**9, UTC))
            patch.setattr(first_start, "marks", marks)
            patch.setattr(search, "marks", marks)
            yield

    def _before(self, file: str) -> GtidSet:
        found = GtidSet()
        count = self.purged + sum(len(commits) for at, (_, commits) in enumerate(self.files, 1) if at < int(file[-6:]))
        if count:
            found.add_range(SOURCE, 1, count)
        return found

    def facts(self) -> Facts:
        return Facts(1, SOURCE, "9.7.4", self._before("binlog.000001"), GtidSet(), "binlog.000001", 4, "binlog.000001")


def us(since: int) -> int:
    return BEGAN * 1_000_000 + since


@st.composite
def binlogs(draw: st.DrawFn) -> Binlog:
    """Time goes on, by steps within a second and over several."""
    now, files = 0, []
    step = st.integers(0, 300_000) | st.integers(500_000, 5_000_000)
    for _ in range(draw(st.integers(1, 12))):
        made = now = now + draw(step)
        commits = []
        for _ in range(draw(st.integers(0, 4))):
            now += draw(step)
            commits.append(now)
        files.append((made, commits))
    return Binlog(files, draw(st.sampled_from([0, 7])))


@given(binlogs(), st.data())
def test_the_first_transaction_to_come_is_found_in_few_files(binlog: Binlog, data: st.DataObject) -> None:
    commits = [mark for _, found in binlog.numbered() for mark in found if mark.gtid]
    delivered = data.draw(st.integers(0, len(commits)))
    seen, wanted = GtidSet(), GtidSet()
    seen.add_range(SOURCE, 1, binlog.purged + delivered)
    wanted.add_all(mark.gtid for mark in commits[delivered:])
    probes: list[str] = []
    with binlog.served(probes):
        found = first_start.committed(pipeline(), wanted, seen)
    assert found == (commits[delivered].from_us // 1000 if delivered < len(commits) else None)
    assert len(probes) == 1
