"""What happened to the tables' shapes, and which tables are stale: known to one table and one file of the lake.

In: the DDL topic and the schema topic. Out: a row in `_schema_changes` for each statement and for each difference
between two shapes, and the marks of tables whose stored values may have changed without a row event. A mark goes when
a snapshot that began behind the statement is applied, or when the shapes before and after it show that no stored value
can be another.

The rows are written before the file says that they are: a run that dies in between finds them by their `id`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from contract import names
from contract.breaks import Break
from contract.checkpoint import OtherRules
from contract.ddl_record import UNSEEN, DdlRecord
from contract.renames import FILE, Rename, Spelling
from contract.schema import Column, TableSchema
from contract.status import Stale
from spark.errors import LakeError
from spark.evolution import breaks
from spark.evolution.read_anew import read_anew
from spark.evolution.renames import rewritten, told_by
from spark.evolution.schema_change_rows import AGAIN, Place, identity, note, of_shape, of_statement, place, shown
from spark.evolution.shape_changes import ALONE, CARRIED, STALE, ShapeChange, keeps_values, shape_changes
from spark.evolution.state import Altered, Mark, State, mark_of, unlogged
from spark.evolution.unlogged import Explained, of_the_source
from spark.failpoints import reached
from spark.lake.in_staging import in_staging
from spark.lake.lake import Lake
from spark.lake.stopped import Name
from spark.tables.schema import Schemas

NOTHING: Mapping[Name, TableSchema | None] = {}
# Of a table without rows, too: some came that were under another name, or what it gets changes in silence.
BRINGS = ("rename", "partition", "cascade")
KEPT = 1000  # statements that are known when they come again
# MySQL logs it where the table is there as well; an application may send it at each start.
COMMENT = r"/\*[^!].*?\*/"
WHERE_NONE_IS = re.compile(rf"(?:\s|{COMMENT})*create\s+table\s+if\s+not\s+exists\b", re.IGNORECASE | re.DOTALL)
# Of what such differences leave as it is another column may be computed, from a member's number or a time's digits.
RECOMPUTED = ("widened", "members")
# Such words do more to rows than the types of the columns tell. FLOAT(7,2), which rounds, looks as FLOAT does.
MORE = re.compile(
    r"\b(generated|as|import|discard|ignore|convert|partition|exchange|rename)\b|\b(float[48]?|double|precision|real)\s*\(|"
    r"\.\.\.$",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Shape:
    """A table's new version: the rows of what differs, the marks that it gives, what it does to the table's past."""

    name: Name
    version: int
    rows: list[dict[str, Any]]
    marks: list[Mark]
    breaks: list[Break]
    spellings: list[Spelling]


class Evolution:
    """One run's part. `told`: a line for each thing that is new."""

    def __init__(self, spark: SparkSession, lake: Lake, schemas: Schemas) -> None:
        self.spark, self.lake, self.schemas, self.known = spark, lake, schemas, schemas
        self.path = lake.at(FILE)
        text = lake.text(self.path)
        self.new = text is None  # nothing was read yet
        self.state = self.noted = State.model_validate_json(text) if text else State()
        self.told: list[str] = []
        self.staged: Mapping[Name, Place] = {}  # tables whose rows come by a snapshot that is under way

    @property
    def read(self) -> Mapping[int, int]:
        return self.state.read

    @property
    def topic(self) -> str | None:
        return self.state.topic

    def begin(self, topic: str | None, anew: bool) -> None:
        """Of the DDL topic of this id; `anew`: from its first record."""
        self.state = self.state.model_copy(update={"topic": topic})
        if anew:
            self.state = self.state.model_copy(update={"read": {}})
            self._write()
            reached("statements begun anew")

    def refuse_lost_shapes(self) -> None:
        """Raises LakeError where the schema topic lacks what was read of it: new versions would count from 1 again, and
        rows would be read by another shape than theirs."""
        shapes = [shape for name in self.schemas.tables() for shape in self.schemas.all(*name)]
        known = {(f"{shape.db}.{shape.table}", shape.version): place(shape) for shape in shapes}
        for name, version in sorted(self.state.versions.items()):
            found = known.get((name, version))
            if found is None or found != self.state.since.get(name, found):
                raise LakeError(
                    f"the topic {names.schemas_topic(self.lake.pipeline)} lacks version {version} of {name}, which the "
                    "lake has followed: it was emptied, or deleted and made again. Nothing was merged. Bring its "
                    "records back, and run this again; without them, give the pipeline a new name in its file, and "
                    "begin anew: stream, and take a snapshot"
                )

    def follow(
        self, records: Iterable[DdlRecord], read: Mapping[int, int], floors: Mapping[Name, list[int]],
        others: Sequence[OtherRules] = (), applied: Mapping[Name, TableSchema | None] = NOTHING,
        known: Schemas | None = None,
    ) -> None:  # fmt: skip
        """`records`: of the DDL topic, up to the offsets `read`. `floors`: where each table's snapshot begins, as a
        `_seq`; `applied`: by which shape its rows are shown. `others`: rules by which tables were shown before.
        `known`: the shapes that were sent before the statements; the run merges by those of before, and a table that
        is new since is among these alone."""
        self.known = known or self.schemas
        statements = list(records)
        self.staged = in_staging(self.lake) if statements or self.state.marks else {}
        unseen = {
            identity(one): one for one in statements if one.kind in UNSEEN and identity(one) not in self.state.seen
        }
        new = [mark for one in unseen.values() for mark in self._marks(one, floors)]
        marks = [*self.state.marks, *new]
        altered, shaped = self._between(statements, floors)
        explained = Explained(self.schemas, altered, floors, applied, others)
        open_ = partial(self._open, between=[*altered, *shaped], explained=explained)
        renames = self._carried([*filter(open_, marks)], [*altered, *shaped])
        done = {((one.db, one.table), one.seq) for one in renames}
        shapes = list(self._shapes(renames, floors, applied))
        rows = [*map(of_statement, statements), *(row for shape in shapes for row in shape.rows)]
        self.told = note(self.spark, self.lake, rows)
        marks = [mark for mark in marks if (mark.name, mark.seq) not in done]
        marks += [mark for shape in shapes for mark in shape.marks]
        broken = [*self.state.breaks, *filter(None, map(breaks.of_statement, new))]
        found = [*(one for shape in shapes for one in shape.breaks), *self._by_rules(others, applied)]
        broken += [one for one in dict.fromkeys(found) if one not in broken]
        spelled = dict.fromkeys([*self.state.spellings, *(one for shape in shapes for one in shape.spellings)])
        state = State(
            read={**self.state.read, **read},
            topic=self.state.topic,
            versions={**self.state.versions, **{".".join(shape.name): shape.version for shape in shapes}},
            since=self._since(),
            marks=[*filter(open_, marks)],
            altered=altered,
            shaped=shaped,
            seen=[*self.state.seen, *unseen][-KEPT:],
            renames=renames,
            breaks=breaks.kept(breaks.read_since(broken, floors, self.lake.pipeline.tables.cascades)),
            spellings=list(spelled),
        )
        self.state = state
        if state != self.noted:
            self._write()
            reached("evolution noted")

    def _write(self) -> None:
        self.lake.write(self.path, self.state.model_dump(mode="json"))
        self.noted = self.state

    def stale(self) -> dict[Name, Stale]:
        """The tables that are stale, each from its first open mark on."""
        # Asked here: the mark stays of a table that is left out for a while, its statement does not come again.
        return {name: stale for name, stale in self.state.stale() if self.lake.pipeline.tables.match(*name)}

    def _by_rules(self, others: Sequence[OtherRules], applied: Mapping[Name, TableSchema | None]) -> Iterator[Break]:
        for name in self.schemas.tables():
            shapes = [self.schemas.newest(*name), applied.get(name)]
            yield from breaks.of_rules(*name, filter(None, shapes), others)

    def _between(
        self, statements: Sequence[DdlRecord], floors: Mapping[Name, list[int]]
    ) -> tuple[list[Altered], list[Altered]]:
        """The last ones that may stand between two shapes of a table, as of State: `altered` and `shaped`."""
        meant = [(*name, one) for one in statements for name in sorted(self._meant(one, floors))]
        altered = [(db, table, one.seq) for db, table, one in meant if one.kind in UNSEEN]
        shaped = [(db, table, one.seq) for db, table, one in meant if self._shapes_anew(one, (db, table))]
        return [*self.state.altered, *altered][-KEPT:], [*self.state.shaped, *shaped][-KEPT:]

    def _since(self) -> dict[str, Place]:
        return {".".join(name): place(self.schemas.newest(*name)) for name in self.schemas.tables()}

    def _carried(self, marks: list[Mark], between: Sequence[Altered]) -> list[Rename]:
        """All that are known, with those of the marks. Each is noted by itself: a run that dies behind it must not look
        for its names again, which a later one may have."""
        for one in self._renames(marks, between):
            self.state = self.state.model_copy(update={"renames": [*self.state.renames, one]})
            self._write()
            reached("rename noted")
        return self.state.renames

    def _renames(self, marks: list[Mark], between: Sequence[Altered]) -> Iterator[Rename]:
        """Those of the marks that are renamed columns and nothing else; the lake's tables have the new names then."""
        known = {((one.db, one.table), one.seq) for one in self.state.renames}
        for mark in marks:
            new = mark.only_renamed and (mark.name, mark.seq) not in known
            around = self._around(mark, between) if new else None
            if around and (columns := told_by(*around, mark.renamed)):
                found = Rename(db=mark.db, table=mark.table, version=around[1].version, seq=mark.seq, columns=columns)
                if rewritten(self.spark, self.lake, found):
                    yield found

    def _shapes(
        self, renames: list[Rename], floors: Mapping[Name, list[int]], applied: Mapping[Name, TableSchema | None]
    ) -> Iterator[Shape]:
        """The shapes that are new, with what differs from the one before."""
        carried = {(one.db, one.table, one.version): {old.lower() for old, _ in one.columns} for one in renames}
        for name in self.schemas.tables():
            done, all_of = self.state.versions.get(".".join(name), 0), self.schemas.all(*name)
            had: dict[str, Column] = {}
            for before, after in zip([None, *all_of[:-1]], all_of, strict=True):
                gone = carried.get((*name, after.version), set())
                if after.version > done:
                    changes = [_ruled(one, had, gone) for one in shape_changes(before, after)] if before else []
                    marks = [mark_of(after, one) for one in changes if one.kind == AGAIN]
                    only = self.lake.pipeline.changes_only(*name)
                    if before and not only and (silent := of_the_source(before, after, changes)):
                        marks.append(unlogged(after, silent))
                    rows = [of_shape(after, replace(one, rule=ALONE) if only else one) for one in changes]
                    yield Shape(name, after.version, rows, marks, *_past(before, after, changes, had))
                had = {column: was for column, was in had.items() if column not in gone}
                had |= {column.name.lower(): column for column in after.columns}
            if read := read_anew(all_of[-1], applied.get(name), floors.get(name, [])):
                changes = [_ruled(one, had, set()) for one in shape_changes(all_of[-1], read)]
                yield Shape(name, all_of[-1].version, [], [], *_past(all_of[-1], read, changes, had))

    def _shapes_anew(self, record: DdlRecord, name: Name) -> bool:
        """Whether it changes the table's shape alone. Where the table was dropped before, the statement that did it is
        known by itself."""
        if record.kind != "shape" or not WHERE_NONE_IS.match(record.statement):
            return record.kind == "shape"
        return not any(place(s) <= record.seq for s in self.schemas.all(*name))

    def _marks(self, record: DdlRecord, floors: Mapping[Name, list[int]]) -> list[Mark]:
        facts = record.model_dump(exclude={"db", "table", "statement"})
        named = [name for name in self._meant(record, floors) if self._had_rows(name, record.seq, floors)]
        if record.kind in BRINGS and record.table is not None:
            named.append((record.db, record.table))
        return [
            Mark(**facts, db=db, table=table, statement=shown(record.statement)) for db, table in sorted(set(named))
        ]

    def _meant(self, record: DdlRecord, floors: Mapping[Name, list[int]]) -> set[Name]:
        return {name for name in {*self.known.tables(), *floors, *self.staged} if _means(record, name)}

    def _had_rows(self, name: Name, seq: Place, floors: Mapping[Name, list[int]]) -> bool:
        """Whether rows of before the statement may be in the lake, or come into it by a snapshot that began before."""
        if name in floors or (name in self.staged and self.staged[name] <= seq):
            return True
        return any(s.since is None or place(s) <= seq for s in self.known.all(*name))

    def _open(self, mark: Mark, between: Sequence[Altered], explained: Explained) -> bool:
        if mark.kind not in BRINGS and mark.name not in {*self.known.tables(), *explained.floors, *self.staged}:
            return False  # no snapshot has it after all: it was gone before its turn
        if tuple(explained.floors.get(mark.name, [])[:3]) > mark.seq:
            return False
        if mark.unlogged:
            return not explained.by(mark)
        # Columns that took each other's names are the same shape.
        if mark.kind != "alter" or mark.renamed or MORE.search(mark.statement):
            return True
        around = self._around(mark, between)
        if around is None or {name.lower() for name in mark.dropped} & {one.name.lower() for one in around[1].columns}:
            return True  # a column that went with its values, and another that has its name
        changes = shape_changes(*around)
        return not keeps_values(changes) or (mark.computed and any(one.kind in RECOMPUTED for one in changes))

    def _around(self, mark: Mark, known: Sequence[Altered]) -> tuple[TableSchema, TableSchema] | None:
        """The shapes before and behind the statement, where it is the one between the two."""
        shapes = [s for s in self.schemas.all(*mark.name) if s.since is not None]
        before = [s for s in shapes if place(s) <= mark.seq]
        after = [s for s in shapes if place(s) > mark.seq]
        if not before or not after:
            return None
        first, last = place(before[-1]), place(after[0])
        between = {seq for *name, seq in known if tuple(name) == mark.name and first < seq < last}
        return (before[-1], after[0]) if between == {mark.seq} else None


def _ruled(change: ShapeChange, had: Mapping[str, Column], renamed: set[str]) -> ShapeChange:
    """What two shapes do not tell: a column that the lake has from a time before, whose old values are not the new
    column's; and one that has its new name in the lake."""
    if change.kind == "renamed" and str(change.column).lower() in renamed:
        return replace(change, rule=CARRIED)
    if change.kind != "added" or str(change.column).lower() not in had:
        return change
    return replace(change, kind=AGAIN, rule=STALE)


def _past(
    before: TableSchema | None, after: TableSchema, changes: list[ShapeChange], had: Mapping[str, Column]
) -> tuple[list[Break], list[Spelling]]:
    if before is None:
        return [], []
    # A column that comes back has no values of before, and those of the one of its name are none of its.
    lost_names = any((one.kind, one.rule) in (("renamed", STALE), (AGAIN, STALE)) for one in changes)
    broken = breaks.of_shape(before, after, place(after), lost_names, had)
    return [broken] if broken else [], list(breaks.spellings(before, after))


def _means(record: DdlRecord, name: Name) -> bool:
    """Whether the statement may have changed the table's rows."""
    db, table = name
    if record.table is not None:
        return (record.db, record.table) == name
    if record.db == db or not record.db:
        return True
    return record.kind == "unknown" and re.search(rf"(?<!\w){re.escape(table)}(?!\w)", record.statement) is not None
