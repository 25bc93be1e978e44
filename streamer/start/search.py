"""A place, or a time, of `streamer.start` or `headrace seek`, looked for in the server's binlog.

Raises StartError, PurgedError and the errors of a connection.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from contract.gtid import GtidSet
from contract.gtid_places import UpTo
from contract.pipeline import Pipeline
from contract.sequence import file_number
from contract.start_at import FIRST, Place
from streamer import source
from streamer.delivery_errors import StartError
from streamer.errors import HeadraceError, PurgedError
from streamer.source import Facts
from streamer.start.marks import Mark, marks

SECOND_US = 1_000_000
# A file whose time and whose successor's are so far before a time is not looked into. To hide a transaction of that
# time the clock would have to be ahead of both by more, and put right again, within it; or a replica's source be ahead.
# An hour is what a clock is wrong by that takes summer time for another zone.
CLOCK_US = 3600 * SECOND_US


class Found(NamedTuple):
    """`seen`: the transactions that are not asked for. `told`: what was found, for a person."""

    seen: GtidSet
    place: Place
    told: str


class Search:
    def __init__(self, pipeline: Pipeline, facts: Facts) -> None:
        self._source = pipeline.source
        self._facts = facts
        self._what = f"pipeline {pipeline.name} at {pipeline.streamer.start}"
        self._sizes: Mapping[str, int] = source.files(pipeline.source)
        self._files = list(self._sizes)

    def place(self, wanted: Place) -> Found:
        self._refuse_missing(wanted)
        size = self._sizes[wanted.file]
        if wanted.pos > size:
            raise self._wrong(f"{wanted.file} ends at {size}", f"Write a position up to {wanted.file}:{size}")
        last = FIRST
        seen = self._before(wanted.file) if self._facts.gtids else UpTo.place(*wanted)
        for mark in marks(self._source, wanted.file):
            if mark.file != wanted.file or mark.start >= wanted.pos:
                behind = mark.start if mark.file == wanted.file else size
                break
            last = mark.start
            if mark.gtid and self._facts.gtids:
                seen.add(mark.gtid)
        else:
            behind = size
        if wanted.pos != behind:
            hint = f"Write {wanted.file}:{last}, where it begins, or {wanted.file}:{behind}, behind it"
            raise self._wrong("the position is in the middle of a transaction or event", hint)
        return Found(seen, wanted, f"{wanted}: behind the GTID set {seen}" if self._facts.gtids else f"{wanted}")

    def _refuse_missing(self, wanted: Place) -> None:
        if wanted.file in self._sizes:
            return
        first, last = self._files[0], self._files[-1]
        hint = f"Its files are {first} to {last}; write one of them, or earliest or latest"
        base = first.rpartition(".")[0]
        if wanted.file.rpartition(".")[0] == base and file_number(wanted.file) < file_number(first):
            hint = f"Its oldest file is {first}: start there (earliest), with a new snapshot of what was before"
            raise PurgedError("starting", self._what, f"the server has purged {wanted.file}", hint)
        raise self._wrong(f"the server has no binlog file {wanted.file}", hint)

    def time(self, wanted: datetime) -> Found:
        """The first transaction that was committed then or later: all before it were earlier, and behind it may be some
        that are, where the clock went back."""
        at_us = round(wanted.timestamp() * SECOND_US)
        self._refuse_future(wanted)
        by_place = not self._facts.gtids
        end = Place(self._file_before(at_us), FIRST)
        seen = UpTo.place(*end) if by_place else self._before(end.file)
        for mark in marks(self._source, end.file):
            end = Place(mark.file, mark.start)
            name = mark.name(by_place)
            if name and mark.to_us >= at_us:
                seen = UpTo.place(*end) if by_place else seen
                return Found(seen, end, f"{end}: transaction {name}, committed at {told(mark.from_us)}")
            if name:
                seen.add(name)
        if by_place:
            end = Place(self._facts.file, self._facts.pos)
            seen = self._facts.executed
        return Found(seen, end, f"no transaction was committed since {told(at_us)}: behind {seen or 'nothing'}")

    def _file_before(self, at_us: int) -> str:
        """From which on the transactions are looked at. The files' times are asked one by one from the oldest on: of a
        clock that was set back they do not ascend, and it is the first one beyond the time that counts."""
        before = ""
        for file in self._files:
            made = self._made(file)
            if not before:
                self._refuse_purged(made, at_us)
            if made.to_us > at_us - CLOCK_US:
                return before or file
            before = file
        return before

    def _made(self, file: str) -> Mark:
        for mark in marks(self._source, file):
            return mark
        raise self._wrong(f"the server gives nothing of {file}", "Look at the server's error log")

    def _refuse_future(self, wanted: datetime) -> None:
        now = source.now(self._source)
        if wanted > now:
            hint = "Write a time that has passed, or latest"
            raise self._wrong(f"the server's clock says {now:%Y-%m-%dT%H:%M:%SZ}: the time has not come", hint)

    def _refuse_purged(self, oldest: Mark, at_us: int) -> None:
        purged = self._facts.purged if self._facts.gtids else file_number(oldest.file) > 1
        if at_us < oldest.from_us and purged:
            cause = f"the server's binlog begins at {told(oldest.from_us)}; what was before is purged"
            raise PurgedError(
                "starting", self._what, cause, "Start at earliest, with a new snapshot, or at a later time"
            )

    def _before(self, file: str) -> GtidSet:
        found = source.before(self._source, file)
        if found is None:
            raise PurgedError("starting", self._what, f"the server has purged {file} meanwhile", "Start again")
        return found

    def _wrong(self, cause: str, hint: str) -> HeadraceError:
        return StartError("starting", self._what, cause, f"{hint} (streamer.start in the pipeline file).")


def told(micros: int) -> str:
    """A time for a person."""
    return f"{datetime.fromtimestamp(micros / SECOND_US, UTC):%Y-%m-%dT%H:%M:%S.%f}Z"
