"""Where the past of the lake's tables breaks: what a table had before cannot be made of what it has and the changes
since. Compaction writes them (spark/evolution/evolution.py), readers of the past ask for them.

Some statements take rows away, or bring some, without a change of any row: DROP and CREATE, RENAME, partitions that are
dropped or exchanged. Others give values another form than those in the changes of before have.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict

Place = tuple[int, int, int]  # epoch, number of the binlog file, position


class Break(BaseModel):
    """At `seq`, of which `ts_ms` is the time (Unix ms UTC; 0 where that is not known). `ends`: versions of rows that
    are known up to there end there. `silent`: a snapshot read there what foreign keys had changed up to it. `columns`:
    those whose values in changes by shapes before `version` have another form than now, and cannot be read."""

    model_config = ConfigDict(frozen=True)

    db: str
    table: str
    seq: Place
    ts_ms: int = 0
    ends: bool = True
    silent: bool = False
    version: int = 0
    columns: tuple[str, ...] = ()


def parse(text: str | None) -> list[Break]:
    """`text`: of the file, None where there is none. Raises ValueError."""
    return [Break.model_validate(one) for one in json.loads(text).get("breaks", ())] if text else []


def of(known: Iterable[Break], db: str, table: str) -> list[Break]:
    """Those of a table, the oldest first."""
    return sorted((one for one in known if (one.db, one.table) == (db, table)), key=lambda one: one.seq)


def last(mine: Iterable[Break]) -> Place | None:
    """Behind which the table's past is known as far as changes tell it."""
    return max((one.seq for one in mine), default=None)
