"""Where a pipeline without a checkpoint begins, as `streamer.start` of the pipeline file says it."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Literal, NamedTuple

from contract import gtids
from contract.gtid import GtidSet
from contract.gtid_places import NAME
from contract.mistake import MistakeError
from contract.moments import moment

PLACE = re.compile(r"(?P<file>[^\s:/]+\.\d+):(?P<pos>\d+)")
TIME = re.compile(r"\d{4}-\d\d-\d\d([T ].*)?")
GTID_LIKE = re.compile(r"\d.*[:-]")
FIRST = 4  # behind a binlog file's magic number
EXPECTED = (
    "earliest, latest, a GTID set, a file and position such as binlog.000012:4, or a time such as 2026-11-21T17:00:00Z"
)


def since(file: int, pos: int) -> str:
    """For a person, from where on a binlog is followed; continues "since". A stream by GTIDs that begins in the middle
    of a file has its beginning for a place."""
    return f"binlog file {file}" if pos <= FIRST else f"binlog file {file}, position {pos:,}"


class Place(NamedTuple):
    """`pos`: bytes, from the file's start."""

    file: str
    pos: int

    def __str__(self) -> str:
        return f"{self.file}:{self.pos}"


Start = Literal["earliest", "latest"] | GtidSet | Place | datetime


def parse(text: str) -> Start:
    """Raises ValueError. A time has a zone, and is given in UTC."""
    if text == "earliest":
        return "earliest"
    if text == "latest":
        return "latest"
    if found := PLACE.fullmatch(text) or NAME.fullmatch(text):  # as transaction.id has it where there are no GTIDs
        if int(found["pos"]) < FIRST:
            what = f"no event of a binlog file begins before position {FIRST}"
            raise MistakeError(what, f"write {found['file']}:{FIRST}, or a later position")
        return Place(found["file"], int(found["pos"]))
    try:
        if TIME.fullmatch(text):
            return moment(text)
    except ValueError as error:
        fix = "write it as 2026-11-21T17:00:00Z, or with another zone, such as +02:00"
        raise MistakeError(str(error), fix) from None
    try:
        return gtids.parse(text)
    except ValueError as error:
        why = f" ({error})" if GTID_LIKE.search(text) else ""
        raise MistakeError(f"{text!r} is none of {EXPECTED}{why}", "write one of them") from None
