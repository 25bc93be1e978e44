"""Which tables a statement may have changed the rows of, and the marks that it gives them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cached_property

from contract.ddl_record import UNSEEN, DdlRecord
from spark.evolution.defines import defined
from spark.evolution.schema_change_rows import Place, place, shown
from spark.evolution.state import Altered, Mark
from spark.lake.stopped import Name
from spark.tables.schema import Schemas

# Of a table without rows, too: some came that were under another name, or what it gets changes in silence.
BRINGS = ("rename", "partition", "cascade")
# MySQL logs it where the table is there as well; an application may send it at each start.
COMMENT = r"/\*[^!].*?\*/"
WHERE_NONE_IS = re.compile(rf"(?:\s|{COMMENT})*create\s+table\s+if\s+not\s+exists\b", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class Marking:
    """`schemas`: the run's; `known`: those that were sent before the statements. `floors`: where each table's snapshot
    begins, as a `_seq`; `staged`: the tables whose rows come by a snapshot that is under way, from which place on."""

    schemas: Schemas
    known: Schemas
    floors: Mapping[Name, list[int]]
    staged: Mapping[Name, Place]

    @cached_property
    def names(self) -> Set[Name]:
        """The tables of which anything is known."""
        return {*self.known.tables(), *self.floors, *self.staged}

    def marks(self, record: DdlRecord) -> list[Mark]:
        facts = record.model_dump(exclude={"db", "table", "statement"}) | {"defines": _defines(record)}
        named = [name for name in self._meant(record) if self._had_rows(name, record.seq)]
        if record.kind in BRINGS and record.table is not None:
            named.append((record.db, record.table))
        return [
            Mark(**facts, db=db, table=table, statement=shown(record.statement)) for db, table in sorted(set(named))
        ]

    def between(self, statements: Sequence[DdlRecord]) -> tuple[list[Altered], list[Altered]]:
        """Those that may stand between two shapes of a table, as of State: `altered` and `shaped`."""
        meant = [(*name, one) for one in statements for name in sorted(self._meant(one))]
        altered = [(db, table, one.seq) for db, table, one in meant if one.kind in UNSEEN]
        shaped = [(db, table, one.seq) for db, table, one in meant if self._shapes_anew(one, (db, table))]
        return altered, shaped

    def _meant(self, record: DdlRecord) -> set[Name]:
        if record.table is not None:
            return {(record.db, record.table)} & self.names
        return {name for name in self.names if _means(record, name)}

    def _had_rows(self, name: Name, seq: Place) -> bool:
        """Whether rows of before the statement may be in the lake, or come into it by a snapshot that began before."""
        if name in self.floors or (name in self.staged and self.staged[name] <= seq):
            return True
        return any(s.since is None or place(s) <= seq for s in self.known.all(*name))

    def _shapes_anew(self, record: DdlRecord, name: Name) -> bool:
        """Whether it changes the table's shape alone. Where the table was dropped before, the statement that did it is
        known by itself."""
        if record.kind != "shape" or not WHERE_NONE_IS.match(record.statement):
            return record.kind == "shape"
        return not any(place(s) <= record.seq for s in self.schemas.all(*name))


def _defines(record: DdlRecord) -> tuple[str, ...]:
    """None where the streamer says that it does more, or does not say."""
    said = record.kind == "alter" and {"dropped", "computed"} <= record.model_fields_set
    return () if not said or record.renamed or record.dropped or record.computed else defined(record.statement)


def _means(record: DdlRecord, name: Name) -> bool:
    """Whether the statement, which names no table, may have changed this one's rows."""
    db, table = name
    if record.db == db or not record.db:
        return True
    return record.kind == "unknown" and re.search(rf"(?<!\w){re.escape(table)}(?!\w)", record.statement) is not None
