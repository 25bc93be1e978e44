"""What differs between two shapes of a table, and what the lake makes of each difference. Pure.

Columns are told apart by their names, as the lake's are. A column that went and another of the same kind that came in
its place count as one that was renamed: the shapes alone cannot tell that from two.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from contract import types
from contract.lake_columns import holds
from contract.schema import Column, TableSchema

CARRIED, STALE, STOPPED = "carried", "stale", "stopped"
ALONE = "kept"  # of a table that has no rows in the lake
BITS = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
SIZES = ("length", "precision", "scale", "fsp")
# Each holds what those before it hold, of the same character set; no VARCHAR has more bytes than a TEXT.
LADDERS = (
    ("tinytext", "text", "mediumtext", "longtext"), ("varchar", "text", "mediumtext", "longtext"),
    ("tinyblob", "blob", "mediumblob", "longblob"), ("varbinary", "blob", "mediumblob", "longblob"),
)  # fmt: skip
# Differences that leave every value that is stored as it is.
KEEPS_VALUES = ("dropped", "reordered", "widened", "members", "nullability")

TOLD = {
    "added": "the lake has it too; it is null in rows that did not change since",
    "added again": "the lake has the values of before it was dropped until the table is read again",
    "dropped": "it stays in the lake, and is null in rows that change from now on",
    "renamed": "the lake has both: values of before are under the old name until the table is read again",
    "reordered": "the lake's columns go by their names; their order follows the next snapshot",
    "widened": "the lake's type holds both, or is made to",
    "narrowed": "the source may have cut values that were there",
    "retyped": "the source converted the values that were there",
    "charset": "the source converted the texts that were there",
    "members": "the lake keeps the members' texts",
    "nullability": "the lake's columns may all be null",
    "mask": "rows that were there have the mask of before",
    "key": "rows are merged by the new key",
}


STALES = {  # of a table that is stale by it
    "widened": "the source has the values that were there in another spelling",
    "members": "the source may have another text for values that were there",
    "nullability": "the source may have written a value for each NULL that was there",
}
STOPS = {"widened": "the lake's column would have to be another type"}  # of a table that is stopped by it


@dataclass(frozen=True)
class ShapeChange:
    """`column`: None of the whole table. `before`, `after`: in words. `rule`: what becomes of the lake's table."""

    kind: str
    column: str | None
    before: str
    after: str
    rule: str

    @property
    def told(self) -> str:
        what = f"{self.kind} {self.column}" if self.column else self.kind
        values = f" ({self.before or 'none'} -> {self.after or 'none'})"
        if (self.kind, self.rule) == ("renamed", CARRIED):
            return f"{what}{values}: the lake's column has the new name, too"
        if self.rule == ALONE:
            return f"{what}{values}: the lake keeps the changes alone, as they came"
        if self.rule == STOPPED:
            why = STOPS.get(self.kind, TOLD[self.kind])
            return f"{what}{values}: {why}; the table is stopped until it is read again"
        stale = STALES.get(self.kind) if self.rule == STALE else None
        return f"{what}{values}: {stale or TOLD[self.kind]}"


def shape_changes(before: TableSchema, after: TableSchema) -> list[ShapeChange]:
    """Every difference, the columns' first."""
    return [*_columns(before, after), *_table(before, after)]


def keeps_values(changes: list[ShapeChange]) -> bool:
    """Whether no stored value can be another than before."""
    return all(change.kind in KEEPS_VALUES and change.rule == CARRIED for change in changes)


def _columns(before: TableSchema, after: TableSchema) -> Iterator[ShapeChange]:
    old = {column.name.lower(): column for column in before.columns}
    new = {column.name.lower(): column for column in after.columns}
    renamed = dict(_renamed(before, after))
    for column in before.columns:
        if column.name in renamed:
            yield ShapeChange("renamed", column.name, column.name, renamed[column.name], STALE)
        elif column.name.lower() not in new:
            yield ShapeChange("dropped", column.name, spelled(column), "", CARRIED)
    for column in after.columns:
        if column.name.lower() in old:
            yield from _column(old[column.name.lower()], column)
        elif column.name not in renamed.values():
            rule = CARRIED if _lake_type(column) else STOPPED
            yield ShapeChange("added", column.name, "", spelled(column), rule)


def _renamed(before: TableSchema, after: TableSchema) -> Iterator[tuple[str, str]]:
    """Names of columns, old and new, where nothing but the name at a place is another."""
    old = {column.name.lower() for column in before.columns}
    new = {column.name.lower() for column in after.columns}
    if len(before.columns) != len(after.columns):
        return
    for was, now in zip(before.columns, after.columns, strict=True):
        gone, came = was.name.lower() not in new, now.name.lower() not in old
        if gone and came and was.model_copy(update={"name": now.name}) == now:
            yield was.name, now.name


def _column(was: Column, now: Column) -> Iterator[ShapeChange]:
    if (size := _size(was, now)) is not None:
        yield ShapeChange(size, now.name, spelled(was), spelled(now), _rule(size, was, now))
    if was.charset != now.charset and was.type == now.type:
        yield ShapeChange("charset", now.name, was.charset or "", now.charset or "", STALE)
    if was.members != now.members:
        rule = CARRIED if _has_members(now, was) else STALE
        yield ShapeChange("members", now.name, _members(was), _members(now), rule)
    if was.nullable != now.nullable:
        words = {True: "may be NULL", False: "NOT NULL"}
        rule = CARRIED if now.nullable else STALE  # without strict mode the source writes a value for each NULL
        yield ShapeChange("nullability", now.name, words[was.nullable], words[now.nullable], rule)
    if was.mask != now.mask:
        yield ShapeChange("mask", now.name, was.mask or "", now.mask or "", STALE)


def _rule(size: str, was: Column, now: Column) -> str:
    before, after = _lake_type(was), _lake_type(now)
    if before is None or after is None or (before != after and not holds(after, before)):
        return STOPPED
    return CARRIED if size == "widened" and not _respelled(was, now) else STALE


def _has_members(now: Column, was: Column) -> bool:
    """Whether each value that was there has the same text. That of a SET has its members in the order of the column."""
    if now.type == "set":
        return [member for member in now.members if member in was.members] == [*was.members]
    return {*was.members} <= {*now.members}


def _size(was: Column, now: Column) -> str | None:
    """`widened`, `narrowed`, `retyped`; None where type and sizes are the same."""
    if _measures(was) == _measures(now):
        return None
    if _holds(now, was):
        return "widened"
    return "narrowed" if _holds(was, now) else "retyped"


def _measures(column: Column) -> tuple[object, ...]:
    return column.type, column.unsigned, *(getattr(column, name) for name in SIZES)


def _holds(wide: Column, narrow: Column) -> bool:
    """Whether every value of one column is one of the other."""
    if wide.type in BITS and narrow.type in BITS:
        low, high = _range(wide)
        least, most = _range(narrow)
        return low <= least and most <= high
    if wide.type != narrow.type:
        return wide.charset == narrow.charset and any(_climbs(ladder, narrow.type, wide.type) for ladder in LADDERS)
    if wide.unsigned > narrow.unsigned:
        return False
    whole = [(one.precision or 0) - (one.scale or 0) for one in (wide, narrow)]
    sizes = [[getattr(one, name) or 0 for name in SIZES] for one in (wide, narrow)]
    return whole[0] >= whole[1] and all(more >= less for more, less in zip(*sizes, strict=True))


def _climbs(ladder: tuple[str, ...], low: str, high: str) -> bool:
    return low in ladder and high in ladder and ladder.index(low) < ladder.index(high)


def _range(column: Column) -> tuple[int, int]:
    bits = BITS[column.type]
    return (0, 2**bits - 1) if column.unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)


def another_form(was: Column, now: Column) -> bool:
    """Whether values of before have a form in changes that those of now's type cannot be read from."""
    old, new = _lake_type(was), _lake_type(now)
    if old == new or not (_size(was, now) in ("narrowed", "retyped") or _respelled(was, now)):
        return False
    return new != "string" or old == "binary" or str(old).startswith(("struct", "array"))


def another_text(was: Column, now: Column) -> bool:
    """Whether values that are the same have another text than before, by which a key's changes belong together."""
    if was.mask != now.mask:
        return True
    digits = (was.fsp, was.scale) != (now.fsp, now.scale)
    return digits or was.charset != now.charset or _respelled(was, now) or _size(was, now) in ("narrowed", "retyped")


def _respelled(was: Column, now: Column) -> bool:
    """Whether the source gives the values that were there in another spelling: BINARY and BIT in more bytes, since they
    are filled up to their length; what the lake has as texts with another number of digits behind the point."""
    if was.type == now.type == "binary":
        return was.length != now.length
    if was.type == now.type == "bit":
        return _bytes(was) != _bytes(now)
    return _lake_type(now) == "string" and (was.fsp, was.scale) != (now.fsp, now.scale)


def _bytes(bits: Column) -> int:
    """0 of a single bit, which is true or false."""
    return 0 if (bits.length or 1) == 1 else ((bits.length or 1) + 7) // 8


def _lake_type(column: Column) -> str | None:
    try:
        return types.of(column).spark
    except types.UnknownTypeError:
        return None


def _table(before: TableSchema, after: TableSchema) -> Iterator[ShapeChange]:
    old = [column.name.lower() for column in before.columns]
    new = [column.name.lower() for column in after.columns]
    if [name for name in old if name in new] != [name for name in new if name in old]:
        yield ShapeChange("reordered", None, ", ".join(old), ", ".join(new), CARRIED)
    if before.key != after.key:
        known = {name.lower() for name in after.key} <= set(old)
        rule = STOPPED if not after.key else CARRIED if known else STALE
        yield ShapeChange("key", None, ", ".join(before.key), ", ".join(after.key), rule)


def spelled(column: Column) -> str:
    """A column's type in words near to SQL."""
    numbers = [str(n) for n in (column.length, column.precision, column.scale) if n is not None]
    numbers = numbers or ([str(column.fsp)] if column.fsp else [])
    sizes = f"({', '.join(numbers)})" if numbers else ""
    return f"{column.type}{sizes}{' unsigned' if column.unsigned else ''}"


def _members(column: Column) -> str:
    return f"{len(column.members)} members: {', '.join(column.members)}"[:200]
