"""Where a pipeline without a checkpoint begins: what `streamer.start` says, found in the server's binlog.

The checkpoint's GTID set holds exactly what is not streamed; its place is at or before everything that is. A first
start makes it durable before its first record: whatever happens next resumes from there, and a snapshot has its P0.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from datetime import datetime

from contract.checkpoint import Checkpoint
from contract.gtid import GtidSet
from contract.gtid_mariadb import MariaGtids
from contract.gtid_places import UpTo
from contract.pipeline import Pipeline
from contract.start_at import FIRST, Place
from streamer import source
from streamer.definitions_since import NO_REPLICA
from streamer.delivery_errors import StartError
from streamer.errors import SourceRefusedError, UnsupportedTransactionError
from streamer.servers import try_dump
from streamer.source import Facts
from streamer.start.marks import marks
from streamer.start.search import SECOND_US, Found, Search


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
        return Search(pipeline, facts).place(begin)
    if isinstance(begin, datetime):
        return Search(pipeline, facts).time(begin)
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
