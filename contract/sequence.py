"""The order tuple of a change: (epoch, file number, transaction's position, rows event's ordinal, row).

Compared as numbers, left to right. Counted before any filter, so it is the same on every replay of the
same binlog. `epoch` rises when a pipeline moves to another server or its coordinates go backwards.
"""

from __future__ import annotations

from typing import NamedTuple

FIELDS = ("epoch", "file", "pos", "event", "row")
SPARK_TYPE = "struct<epoch:bigint,file:bigint,pos:bigint,event:bigint,row:bigint>"


class Sequence(NamedTuple):
    """`pos`: byte position of the transaction's first event, 64 bits. `event`, `row`: counted from 0."""

    epoch: int
    file: int
    pos: int
    event: int = 0
    row: int = 0


def file_number(name: str) -> int:
    """`binlog.000012` -> 12. Raises ValueError where the name has no number at its end."""
    number = name.rpartition(".")[2]
    if not number.isdigit():
        raise ValueError(f"binlog file name {name!r} does not end in a number")
    return int(number)
