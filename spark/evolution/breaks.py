"""Which statements and which new shapes break the past of a table (contract/breaks.py). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from contract.breaks import Break, Place
from contract.checkpoint import OtherRules
from contract.patterns import any_matches
from contract.renames import Spelling
from contract.schema import Column, TableSchema
from contract.shown_by import chooses
from spark.evolution.shape_changes import another_form, another_text

KEPT = 1000
MOVES = ("drop", "rename", "partition", "unknown")
# ALTER TABLE ... IMPORT TABLESPACE brings other rows; ALTER IGNORE TABLE takes those away that are twice.
MOVES_TOO = re.compile(r"\b(import|ignore)\b", re.IGNORECASE)
SILENT = "cascade"  # rows change from there on, again and again: each snapshot has what was silent up to it


class Statement(Protocol):
    """That may change rows without row events. `kind`: as the DDL topic has it."""

    db: str
    table: str
    kind: str
    seq: Place
    ts_ms: int
    statement: str


def of_statement(one: Statement) -> Break | None:
    silent, moves = one.kind == SILENT, one.kind == "alter" and MOVES_TOO.search(one.statement)
    if not silent and not moves and one.kind not in MOVES:
        return None
    return Break(db=one.db, table=one.table, seq=one.seq, ts_ms=one.ts_ms, ends=not silent, silent=silent)


def read_since(
    known: Iterable[Break], floors: Mapping[tuple[str, str], Sequence[int]], allowed: Iterable[str]
) -> list[Break]:
    """With the places where snapshots read what foreign keys had changed in silence. `floors`: each table's last
    snapshot's, as a `_seq`; `allowed`: tables that change so, as the pipeline file has them."""
    silent = {(one.db, one.table) for one in known if one.silent} & floors.keys()
    silent |= {name for name in floors if any_matches(allowed, *name)}
    others = [one for one in known if not (one.silent and (one.db, one.table) in silent)]
    return others + [_silent(*name, floors[name]) for name in sorted(silent)]


def kept(known: Iterable[Break]) -> list[Break]:
    """The last KEPT of each table: one that has many is not to make another's be forgotten."""
    found: dict[tuple[str, str], list[Break]] = {}
    for one in known:
        found.setdefault((one.db, one.table), []).append(one)
    return [one for mine in found.values() for one in mine[-KEPT:]]


def _silent(db: str, table: str, floor: Sequence[int]) -> Break:
    epoch, file, pos = floor[:3]
    return Break(db=db, table=table, seq=(epoch, file, pos), ends=False, silent=True)


def of_shape(
    before: TableSchema, after: TableSchema, at: Place, lost_names: bool, had: Mapping[str, Column]
) -> Break | None:
    """`lost_names`: the lake has no values of before under the new name of a column. `had`: the last column of each
    name in small letters that the table had before, also of those that it had dropped by then."""
    old = {column.name.lower(): column for column in before.columns}
    both = [(old[now.name.lower()], now) for now in after.columns if now.name.lower() in old]
    known = {**had, **old}
    others = tuple(now.name for now in after.columns if (was := known.get(now.name.lower())) and another_form(was, now))
    key = {name.lower() for name in after.key}
    ends = before.key != after.key or any(another_text(was, now) for was, now in both if now.name.lower() in key)
    if not ends and not others and not lost_names:
        return None
    return Break(db=after.db, table=after.table, seq=at, ends=ends, version=after.version, columns=others)


def of_rules(db: str, table: str, shapes: Iterable[TableSchema], others: Iterable[OtherRules]) -> Iterator[Break]:
    """Where the pipeline file's rules were changed and the same row may have another key since: of a hash neither a
    version nor a snapshot tells by what secret it is, or whether it was plain before. `shapes`: of what the table and
    its last changes have."""
    hashed = any(shape.column(name).mask for shape in shapes for name in shape.key)
    for one in others:
        if hashed and chooses(one.tables, db, table):
            yield Break(db=db, table=table, seq=one.until, ts_ms=one.ts_ms)


def spellings(before: TableSchema, after: TableSchema) -> Iterator[Spelling]:
    """The names that differ by small and capital letters alone: both."""
    old = {column.name.lower(): column.name for column in before.columns}
    for column in after.columns:
        if (was := old.get(column.name.lower(), column.name)) != column.name:
            for name in (was, column.name):
                yield Spelling(db=after.db, table=after.table, name=name)
