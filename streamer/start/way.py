"""Whether a stream goes on by GTID or by file and position: what its own server can do from the checkpoint's place on.

A server gets GTIDs, or loses them, while it runs, and a dump by GTID passes by what was written without one. So the
way is chosen at each start; a stream under way whose server does not fit any more begins again at its checkpoint.
"""

from __future__ import annotations

from contract import start_at
from contract.checkpoint import Checkpoint
from contract.gtid import GtidSet
from contract.gtid_places import name
from contract.pipeline import Pipeline, Source
from streamer import source
from streamer.errors import AnonymousError
from streamer.protocol import events as ev
from streamer.protocol import refusals
from streamer.protocol.position import FIRST, WRAP
from streamer.servers import Servers
from streamer.source import Facts
from streamer.start.marks import marks
from streamer.start.resume import begun_anew

SECOND = 1_000_000  # microseconds


def chosen(servers: Servers, checkpoint: Checkpoint) -> Checkpoint:
    """The same place, as its own server lets a stream go on behind it: file and position name it, or a GTID set where
    all that follows has GTIDs. As it is where that server does not answer. Raises AnonymousError where neither names
    it, and the errors of a connection."""
    found = servers.own(checkpoint)
    return checkpoint if found is None else _of(servers.pipeline(found.source), checkpoint, found.facts)


def _of(pipeline: Pipeline, checkpoint: Checkpoint, facts: Facts) -> Checkpoint:
    if checkpoint.by_place:
        return _by_gtid(pipeline.source, checkpoint, facts) if facts.gtids else checkpoint
    if facts.gtids:
        if lacks_gtid(pipeline.source, (checkpoint.file, checkpoint.pos)):
            raise anonymous(pipeline.source, (checkpoint.file, checkpoint.pos))
        return checkpoint
    if not _is_end(checkpoint):
        raise anonymous(pipeline.source, (checkpoint.file, checkpoint.pos))
    _refuse_reset(pipeline.source, checkpoint)
    seen = name(checkpoint.file, checkpoint.pos) if checkpoint.seen_set else ""
    return checkpoint.model_copy(update={"by_place": True, "gtid_set": "", "seen_set": seen})


def _refuse_reset(reading: Source, checkpoint: Checkpoint) -> None:
    """A server keeps what it has executed while it writes no GTIDs, unless its binlog was begun anew."""
    end = source.end(reading)
    streamed = reading.gtids(checkpoint.seen_set or checkpoint.gtid_set)
    if end is not None and (lost := streamed.subtract(end.executed)):
        raise begun_anew(checkpoint, f"the server no longer has {lost}")


def _is_end(checkpoint: Checkpoint) -> bool:
    """Whether its place is the end of what its set holds, and of an open XA transaction the beginning is known. By GTID
    a first start, or one on another server, has a beginning of the binlog there."""
    if checkpoint.seen_set:
        return checkpoint.read_from is not None and not checkpoint.seen_elsewhere
    return checkpoint.pos > start_at.FIRST or not checkpoint.gtid_set


def lacks_gtid(reading: Source, behind: tuple[str, int] | None) -> bool:
    """`behind`: up to where this server was read."""
    return behind is not None and behind[1] > start_at.FIRST and source.lacks_gtid(reading, *behind)


def anonymous(reading: Source, behind: tuple[str, int]) -> AnonymousError:
    return refusals.anonymous("resuming", f"the binlog of {reading.where} behind {behind[0]}:{behind[1]}")


def _by_gtid(reading: Source, checkpoint: Checkpoint, facts: Facts) -> Checkpoint:
    """Behind all that it has executed, but for what stands behind the place. A server with gtid_mode = ON gives nothing
    that has no GTID, however it is asked for: AnonymousError. Raises WrongServerError where the file is another one."""
    file, pos = checkpoint.file, checkpoint.pos
    files = list(source.files(reading))
    if checkpoint.seen_set or pos >= WRAP or file not in files:
        return checkpoint
    # In its last file may be what was streamed and is not executed yet: a commit waits there for its replicas
    # (semi-synchronous replication). The file before it may begin with transactions without GTIDs.
    begin = FIRST if file == files[-1] else pos
    before, later = GtidSet(), GtidSet()
    for mark in marks(reading, file, begin):
        if (mark.kind, mark.file) == (ev.FORMAT_DESCRIPTION, file):
            _refuse_other(checkpoint, mark.from_us // SECOND)
        if mark.gtid:
            streamed = mark.file == file and mark.start < pos
            (before if streamed else later).add(mark.gtid)
    behind = str(facts.executed.subtract(later).union(before))
    return checkpoint.model_copy(update={"by_place": False, "file_made": 0, "gtid_set": behind})


def _refuse_other(checkpoint: Checkpoint, made: int) -> None:
    """`made`: when the server made its file of the checkpoint's name, Unix seconds."""
    if checkpoint.file_made not in (0, made):
        raise begun_anew(checkpoint, f"{checkpoint.file} is another file than the one that was read under this name")
