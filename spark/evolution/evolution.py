"""What happened to the tables' shapes, and which tables are stale: known to one table and one file of the lake.

In: the DDL topic and the schema topic. Out: a row in `_schema_changes` for each statement and for each difference
between two shapes, and the marks of tables whose stored values may have changed without a row event. A mark goes when
a snapshot that began behind the statement is applied, or when the shapes before and after it, or a change behind it of
the shape of before, show that no stored value can be another.

The rows are written before the file says that they are: a run that dies in between finds them by their `id`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set

from pyspark.sql import SparkSession

from contract import names
from contract.breaks import Break
from contract.checkpoint import Checkpoint, OtherRules
from contract.ddl_record import UNSEEN, DdlRecord
from contract.renames import FILE, Rename
from contract.schema import TableSchema
from contract.status import Stale
from spark.errors import LakeError
from spark.evolution import breaks
from spark.evolution.left_alone import first_changes, left_alone
from spark.evolution.marking import Marking
from spark.evolution.new_shapes import History
from spark.evolution.open_marks import OpenMarks, around
from spark.evolution.renames import rewritten, told_by
from spark.evolution.schema_change_rows import Place, identity, note, of_statement, place
from spark.evolution.state import Mark, State
from spark.evolution.statements import Statements, statements
from spark.evolution.unlogged import Explained
from spark.failpoints import reached
from spark.lake.in_staging import in_staging
from spark.lake.lake import Lake
from spark.lake.stopped import Name
from spark.tables.schema import Schemas

NOTHING: Mapping[Name, TableSchema | None] = {}
KEPT = 1000  # statements that are known when they come again


class Evolution:
    """One run's part. `told`: a line for each thing that is new."""

    def __init__(self, spark: SparkSession, lake: Lake, schemas: Schemas) -> None:
        self.spark, self.lake, self.schemas = spark, lake, schemas
        self.path = lake.at(FILE)
        text = lake.text(self.path)
        self.new = text is None  # nothing was read yet
        self.state = self.noted = State.model_validate_json(text) if text else State()
        self.told: list[str] = []

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

    def lack(self, said: Set[str | None], at: Checkpoint) -> None:
        """Changes of these tables, of before that place, are lost for good, which `follow` notes; of all, where one
        of them is not known."""
        known = {".".join(name): name for name in self.schemas.tables()}
        tables = [known[name] for name in said if name in known] if said <= known.keys() else [*known.values()]
        made = [Break(db=db, table=table, seq=at.place, ts_ms=at.ts_ms) for db, table in sorted(tables)]
        found = [one for one in made if one not in self.state.breaks]  # a run that failed since has noted it
        for one in found:
            print(f"{one.db}.{one.table}: a file of its changes was lost: its past begins behind it", flush=True)
        self.state = self.state.model_copy(update={"breaks": [*self.state.breaks, *found]})

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
        known: Schemas | None = None, until: Place | None = None,
    ) -> None:  # fmt: skip
        """`records`: of the DDL topic, up to the offsets `read`. `floors`: where each table's snapshot begins, as a
        `_seq`; `applied`: by which shape its rows are shown. `others`: rules by which tables were shown before.
        `known`: the shapes that were sent before the statements; the run merges by those of before, and a table that
        is new since is among these alone. `until`: the place of the checkpoint that was read before all that."""
        records = list(records)
        marking = Marking(
            self.schemas, known or self.schemas, floors, in_staging(self.lake) if records or self.state.marks else {}
        )
        seen = {*self.state.seen}
        unseen = {id: one for one in records if one.kind in UNSEEN and (id := identity(one)) not in seen}
        new = [mark for one in unseen.values() for mark in marking.marks(one)]
        altered, shaped = marking.between(records)
        between = statements([*self.state.altered, *altered], [*self.state.shaped, *shaped])
        marks = [*self.state.marks, *new]
        behind = first_changes(self.lake, self.schemas, marks, until)
        marks = [mark.model_copy(update={"followed": behind.get((mark.name, mark.seq))}) for mark in marks]
        alone = left_alone(self.schemas, marks, between, behind)
        marks, between = [mark for mark in marks if (mark.name, mark.seq) not in alone], between.without(alone)
        still = OpenMarks(marking, between, Explained(self.schemas, between, floors, applied, others))
        renames = self._carried([*filter(still.has, marks)], between)
        done = {((one.db, one.table), one.seq) for one in renames}
        shapes = [shape for one in self._histories(renames, floors, applied) for shape in one.new()]
        rows = [*map(of_statement, records), *(row for shape in shapes for row in shape.rows)]
        self.told = note(self.spark, self.lake, rows)
        marks = [mark for mark in marks if (mark.name, mark.seq) not in done]
        marks += [mark for shape in shapes for mark in shape.marks]
        found = [*(one for shape in shapes for one in shape.breaks), *self._by_rules(others, applied)]
        broken = self._broken([*filter(None, map(breaks.of_statement, new))], found)
        spelled = dict.fromkeys([*self.state.spellings, *(one for shape in shapes for one in shape.spellings)])
        # Not by the new marks: shapes of before such a DROP may be known since the next run only.
        altered, shaped = between.since_drops(filter(still.has, self.state.marks)).lists()
        state = State(
            read={**self.state.read, **read},
            topic=self.state.topic,
            versions={**self.state.versions, **{".".join(shape.name): shape.version for shape in shapes}},
            since=self._since(),
            marks=[*filter(still.has, marks)],
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

    def _broken(self, new: list[Break], found: list[Break]) -> list[Break]:
        """With those that are known. `found`: they are found again by each run."""
        known = {*self.state.breaks, *new}
        return [*self.state.breaks, *new, *(one for one in dict.fromkeys(found) if one not in known)]

    def _by_rules(self, others: Sequence[OtherRules], applied: Mapping[Name, TableSchema | None]) -> Iterator[Break]:
        for name in self.schemas.tables():
            shapes = [self.schemas.newest(*name), applied.get(name)]
            yield from breaks.of_rules(*name, filter(None, shapes), others)

    def _since(self) -> dict[str, Place]:
        return {".".join(name): place(self.schemas.newest(*name)) for name in self.schemas.tables()}

    def _carried(self, marks: list[Mark], between: Statements) -> list[Rename]:
        """All that are known, with those of the marks. Each is noted by itself: a run that dies behind it must not look
        for its names again, which a later one may have."""
        for one in self._renames(marks, between):
            self.state = self.state.model_copy(update={"renames": [*self.state.renames, one]})
            self._write()
            reached("rename noted")
        return self.state.renames

    def _renames(self, marks: list[Mark], between: Statements) -> Iterator[Rename]:
        """Those of the marks that are renamed columns and nothing else; the lake's tables have the new names then."""
        known = {((one.db, one.table), one.seq) for one in self.state.renames}
        for mark in marks:
            new = mark.only_renamed and (mark.name, mark.seq) not in known
            shapes = around(self.schemas, mark, between) if new else None
            if shapes and (columns := told_by(*shapes, mark.renamed)):
                found = Rename(db=mark.db, table=mark.table, version=shapes[1].version, seq=mark.seq, columns=columns)
                if rewritten(self.spark, self.lake, found):
                    yield found

    def _histories(
        self, renames: Sequence[Rename], floors: Mapping[Name, list[int]], applied: Mapping[Name, TableSchema | None]
    ) -> Iterator[History]:
        mine: dict[Name, list[Rename]] = {}
        for one in renames:
            mine.setdefault((one.db, one.table), []).append(one)
        for name in self.schemas.tables():
            yield History(
                shapes=self.schemas.all(*name),
                done=self.state.versions.get(".".join(name), 0),
                renames=mine.get(name, []),
                changes_only=self.lake.pipeline.changes_only(*name),
                applied=applied.get(name),
                floor=floors.get(name, []),
            )
