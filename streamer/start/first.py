"""Where a pipeline without a checkpoint begins: what `streamer.start` says, found in the server's binlog.

The checkpoint's GTID set holds exactly what is not streamed; its place is at or before everything that is. A first
start makes it durable before its first record: whatever happens next resumes from there, and a snapshot has its P0.
"""

from __future__ import annotations

import time
from bisect import bisect_left, bisect_right
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import NamedTuple

from contract.checkpoint import Checkpoint
from contract.gtid import GtidSet
from contract.gtid_mariadb import MariaGtids
from contract.gtid_places import UpTo
from contract.pipeline import Pipeline
from contract.sequence import file_number
from contract.start_at import FIRST, Place
from streamer import source
from streamer.definitions_since import NO_REPLICA
from streamer.delivery_errors import StartError
from streamer.errors import HeadraceError, PurgedError, SourceRefusedError, UnsupportedTransactionError
from streamer.servers import try_dump
from streamer.source import Facts
from streamer.start.marks import Mark, marks

SECOND_US = 1_000_000


class Found(NamedTuple):
    """`seen`: the transactions that are not asked for. `told`: what was found, for a person."""

    seen: GtidSet
    place: Place
    told: str


def first(pipeline: Pipeline, facts: Facts) -> tuple[Checkpoint, str]:
    """The checkpoint of a pipeline that has none, and what was found. Raises StartError, PurgedError and the errors of
    a connection."""
    found = find(pipeline, facts)
    now = time.time_ns() // 1_000_000
    checkpoint = Checkpoint(
        pipeline=pipeline.name,
        connector_id=f"headrace-{pipeline.name}",
        server_id=facts.server_id,
        server_uuid=facts.server_uuid,
        epoch=0,
        file=found.place.file,
        pos=found.place.pos,
        gtid_set=str(found.seen) if facts.gtids else "",
        by_place=not facts.gtids,
        file_made=0 if facts.gtids else file_made(pipeline, found.place),
        ts_ms=now,
        events=0,
        written_at=now,
        tables=pipeline.tables.noted,
    )
    return checkpoint, found.told


def file_made(pipeline: Pipeline, place: Place) -> int:
    """When the server made the place's file, Unix seconds: a stream by place knows it again by that. Raises as
    `first`."""
    return next(marks(pipeline.source, place.file)).from_us // SECOND_US


def find(pipeline: Pipeline, facts: Facts) -> Found:
    """Raises as `first`."""
    begin = pipeline.streamer.begin()
    # A transaction that is in the binlog may not be in the server's executed set yet (it waits for its engine, for a
    # replica's answer): it is streamed, from a place before the end that was read. So no place but the first is safe.
    beginning = Place(facts.first_file, FIRST)
    if isinstance(begin, Place):
        return _Search(pipeline, facts).place(begin)
    if isinstance(begin, datetime):
        return _Search(pipeline, facts).time(begin)
    if begin == "earliest":
        if facts.gtids:
            _refuse_anonymous(pipeline, facts)
        return Found(facts.purged, beginning, f"earliest: {beginning}")
    if begin == "latest" and not facts.gtids:
        end = Place(facts.file, facts.pos)
        return Found(facts.executed, end, f"latest: behind {end}")
    if begin == "latest":
        return Found(facts.executed, beginning, f"latest: behind all that the server has executed at {facts.file}")
    seen = pipeline.source.gtids(pipeline.streamer.start)
    if not facts.gtids:
        raise _without_gtids(pipeline)
    _refuse_unknown(pipeline, facts, seen)
    return Found(seen, beginning, f"behind the GTID set {seen}")


def committed(pipeline: Pipeline, wanted: GtidSet, seen: GtidSet) -> int | None:
    """When (Unix ms) the first of the transactions `wanted` in the server's binlog was committed, at the earliest; None
    where it has none. `seen`: all that stand before them. Reads few files' beginnings, and one from there on. Raises as
    `first`."""
    files = list(source.files(pipeline.source))
    by_place = isinstance(wanted, UpTo)

    def beyond(file: str) -> bool:
        before = UpTo.place(file, FIRST) if by_place else source.before(pipeline.source, file)
        return before is not None and not seen.issuperset(before)

    file = files[max(0, bisect_left(files, True, key=beyond) - 1)]
    for mark in marks(pipeline.source, file):
        if (name := mark.name(by_place)) and wanted.contains(name):
            return mark.from_us // 1000
    return None


def _without_gtids(pipeline: Pipeline) -> StartError:
    what = f"pipeline {pipeline.name} at {pipeline.streamer.start}"
    hint = (
        "Write earliest, latest, a file and position, or a time (streamer.start in the pipeline file); or switch GTIDs "
        "on, as headrace check says."
    )
    return StartError("starting", what, "the server has no GTIDs (gtid_mode)", hint)


def _refuse_anonymous(pipeline: Pipeline, facts: Facts) -> None:
    """Raises StartError where the binlog begins with transactions of before the server had GTIDs: a dump by GTID passes
    by their files in silence, and all that they changed."""
    try:
        next((mark for mark in marks(pipeline.source, facts.first_file) if mark.gtid), None)
    except UnsupportedTransactionError as error:  # the server gives no such transaction
        what = f"pipeline {pipeline.name} at {pipeline.streamer.start}"
        cause = f"the binlog begins, in {facts.first_file}, with transactions without GTIDs"
        hint = "Write latest (streamer.start in the pipeline file), and take a snapshot, which has what they changed."
        raise StartError("starting", what, cause, hint) from error


def _refuse_unknown(pipeline: Pipeline, facts: Facts, seen: GtidSet) -> None:
    """Raises StartError for transactions that the server has not: a stream behind them would leave out what comes."""
    what = f"pipeline {pipeline.name} at {pipeline.streamer.start}"
    hint = "Correct the GTID set, or write earliest or latest (streamer.start in the pipeline file)."
    if missing := seen.subtract(facts.executed):
        cause = f"the server has not executed {missing}: it has {facts.executed or 'nothing'}"
        raise StartError("starting", what, cause, hint)
    # MariaDB's sets tell the number alone; which server's transaction has it, a dump says. What is purged is told of
    # behind this, with the transactions' names.
    if isinstance(seen, MariaGtids) and not facts.purged.subtract(seen):
        try:
            try_dump(pipeline.source.model_copy(update={"server_id": NO_REPLICA}), seen, pipeline.name)
        except SourceRefusedError as error:
            raise StartError("starting", what, error.cause, hint) from None


class _Search:
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
        at_us = round(wanted.timestamp() * SECOND_US)
        self._refuse_future(wanted)
        # A file is made within the second that its first event tells; what was committed before is in files before.
        file = bisect_right(self._files, at_us, key=self._made_by) - 1
        if file < 0:
            self._refuse_purged(at_us)
        by_place = not self._facts.gtids
        end = Place(self._files[max(file, 0)], FIRST)
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

    def _made_by(self, file: str) -> int:
        return self._made(file).to_us

    def _made(self, file: str) -> Mark:
        for mark in marks(self._source, file):
            return mark
        raise self._wrong(f"the server gives nothing of {file}", "Look at the server's error log")

    def _refuse_future(self, wanted: datetime) -> None:
        now = source.now(self._source)
        if wanted > now:
            hint = "Write a time that has passed, or latest"
            raise self._wrong(f"the server's clock says {now:%Y-%m-%dT%H:%M:%SZ}: the time has not come", hint)

    def _refuse_purged(self, at_us: int) -> None:
        oldest = self._made(self._files[0])
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
