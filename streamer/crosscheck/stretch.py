"""Which part of the binlog is checked: from one place to another, or the last transactions."""

from __future__ import annotations

from collections import deque

from contract import start_at
from contract.pipeline import Source
from contract.start_at import Place
from streamer import source as server
from streamer.crosscheck.errors import PlaceError
from streamer.start.marks import Mark, marks

REFERENCE_LIMIT = 1 << 32  # mysql-replication asks for 32 bits of a position


def place(text: str, option: str) -> Place:
    """Raises PlaceError."""
    try:
        found = start_at.parse(text)
    except ValueError:
        found = "earliest"
    if not isinstance(found, Place):
        hint = f"Give {option} as FILE:POSITION, such as binlog.000012:4; SHOW BINLOG EVENTS lists positions."
        raise PlaceError("read", f"{option} {text}", "it is no place in a binlog", hint)
    return found


def last(source: Source, count: int) -> Place:
    """Where the last `count` transactions begin, or the oldest that there are. Raises HeadraceError."""
    found: deque[Mark] = deque(maxlen=count)
    for file in reversed(server.files(source)):
        found.clear()
        found.extend(mark for mark in marks(source, file) if mark.gtid)
        if len(found) == count:
            break
    if not found:
        hint = "Give a stretch with --from and --to, or let the server commit something."
        raise PlaceError("read", "the last transactions", "the server's binlog files hold none", hint)
    return Place(found[0].file, found[0].start)


def first_behind(source: Source, begin: Place) -> Place:
    """Where the first transaction at `begin` or behind it begins. Raises PlaceError where there is none."""
    known = begin.file in server.files(source)
    for mark in marks(source, begin.file) if known else ():
        if mark.gtid and (mark.file != begin.file or mark.start >= begin.pos):
            return Place(mark.file, mark.start)
    hint = "Give an earlier place; SHOW BINARY LOGS lists the files."
    raise PlaceError("read", str(begin), "no transaction begins there or behind it", hint)


def refuse_far(begin: Place) -> None:
    """Raises PlaceError."""
    if begin.pos >= REFERENCE_LIMIT:
        cause = "mysql-replication cannot begin behind the first 4 GiB of a file"
        raise PlaceError("read", str(begin), cause, "Give a place in the first 4 GiB of a file.")
