"""What the lake keeps in mind of its tables' shapes and of the statements that made tables stale."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from pydantic import BaseModel

from contract.breaks import Break
from contract.renames import Rename, Spelling
from contract.schema import TableSchema
from contract.status import Stale
from contract.steps import SNAPSHOT_TABLE
from spark.evolution.schema_change_rows import AGAIN, TOLD, UNLOGGED, Place, place
from spark.evolution.shape_changes import ShapeChange
from spark.lake.stopped import Name

Altered = tuple[str, str, Place]


class Mark(BaseModel):
    """A statement that made a table stale, and what was not yet read again. `defines`: the columns that it defines
    anew, where it does nothing else; none in doubt, and from an earlier version of Headrace. `followed`: of such a
    mark the first change of a row behind it, its place and its version, once that is known (left_alone.py)."""

    db: str
    table: str
    kind: str
    seq: tuple[int, int, int]
    gtid: str | None
    ts_ms: int
    statement: str
    renamed: tuple[tuple[str, str], ...] = ()
    only_renamed: bool = False
    dropped: tuple[str, ...] = ()
    computed: bool = False
    defines: tuple[str, ...] = ()
    followed: tuple[Place, int] | None = None

    @property
    def name(self) -> Name:
        return self.db, self.table

    @property
    def unlogged(self) -> bool:
        return self.kind == UNLOGGED

    def stale(self, last: Place | None = None) -> Stale:
        """As the report and the status say it. `last`: of a later statement on the table, behind which what was to be
        read again before is to be read once more, or is there at all."""
        when = f" {datetime.fromtimestamp(self.ts_ms / 1000, UTC):%Y-%m-%d %H:%M:%S} UTC" if self.ts_ms else ""
        later = {"drop": ", if it is made again", "rename": ", if it is there now"}.get(self.kind, "")
        since = self.gtid or ":".join(map(str, self.seq))
        again = f", and again at {':'.join(map(str, last))}" if last else ""
        reason = (
            f"stale since{when} ({since}{again}): {self.statement}: {TOLD[self.kind]}. "
            f"To mend it, {SNAPSHOT_TABLE}{later}"
        )
        return Stale(kind=self.kind, since=self.seq, ts_ms=self.ts_ms, gtid=self.gtid, reason=reason)


class State(BaseModel):
    """`read`: the DDL topic's offsets that are done; `topic`: its id. `versions`: the last shape of each table that is;
    `since`: from where on it holds. `altered`: each table's last statements that may have changed rows; `shaped`: those
    that changed a shape alone. `seen`: those that made a mark, also where it is gone: in a new epoch they may come
    again. `renames`: what the lake's tables followed by themselves. `breaks`, `spellings`: what the readers of the past
    ask for."""

    read: dict[int, int] = {}
    topic: str | None = None
    versions: dict[str, int] = {}
    since: dict[str, Place] = {}
    marks: list[Mark] = []
    altered: list[Altered] = []
    shaped: list[Altered] = []
    seen: list[str] = []
    renames: list[Rename] = []
    breaks: list[Break] = []
    spellings: list[Spelling] = []

    def stale(self) -> Iterator[tuple[Name, Stale]]:
        """Each table once, from its first mark on."""
        first: dict[Name, Mark] = {}
        for mark in sorted(self.marks, key=lambda mark: mark.seq):
            first.setdefault(mark.name, mark)
        last = self._last()
        return ((name, mark.stale(last[name] if last[name] > mark.seq else None)) for name, mark in first.items())

    def _last(self) -> dict[Name, Place]:
        found: dict[Name, Place] = {}
        for name, seq in [*((mark.name, mark.seq) for mark in self.marks), *((one[:2], one[2]) for one in self.shaped)]:
            found[name] = max(seq, found.get(name, seq))
        return found


def mark_of(schema: TableSchema, change: ShapeChange) -> Mark:
    return _mark(schema, AGAIN, f"the column {change.column} came back")


def unlogged(schema: TableSchema, changes: list[ShapeChange]) -> Mark:
    """Of a shape that no statement made which the binlog has: by a replica alone, before it became the source."""
    return _mark(schema, UNLOGGED, ", ".join(change.told for change in changes))


def _mark(schema: TableSchema, kind: str, statement: str) -> Mark:
    facts: dict[str, Any] = {"kind": kind, "seq": place(schema), "gtid": None, "ts_ms": 0, "statement": statement}
    return Mark(db=schema.db, table=schema.table, **facts)
