"""Which statements are still known, of many tables and of those that were dropped."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from contract.ddl_record import DdlRecord
from contract.schema import TableSchema
from contract.sequence import Sequence
from spark.evolution.evolution import Evolution
from spark.evolution.marking import Marking
from spark.evolution.new_shapes import History
from spark.evolution.open_marks import OpenMarks
from spark.evolution.state import Mark
from spark.evolution.statements import KEPT, statements
from spark.evolution.unlogged import Explained
from spark.lake.lake import Lake
from spark.lake.stopped import Name
from spark.tables.schema import Schemas
from tests.spark.changes_by_hand import ITEMS, LINES
from tests.spark.test_evolution import FIRST, NAME, WIDE, Followed, ddl, shape

MANY = KEPT + KEPT // 2
ID, TEXT, PRICE = ITEMS.columns
OTHER = ("shop", "lines")


class Asked(Schemas):
    """Counts how often it is asked for all tables."""

    times = 0

    def tables(self) -> list[Name]:
        self.times += 1
        return super().tables()


def of_many(column: str, **more: object) -> tuple[list[TableSchema], list[DdlRecord]]:
    """Tables of which each is altered once, and the shapes around that."""
    shapes, records = list[TableSchema](), list[DdlRecord]()
    now = (ID, TEXT.model_copy(update=more), PRICE)
    for n in range(MANY):
        name = {"table": f"t{n}"}
        later = {"version": 2, "columns": now, "since": Sequence(0, 1, 20_000 + n)}
        shapes += [FIRST.model_copy(update=name), FIRST.model_copy(update=name | later)]
        records.append(ddl(1000 + n, table=f"t{n}", statement=f"ALTER TABLE t{n} MODIFY name {column}"))
    return shapes, records


def opened(schemas: Schemas, records: list[DdlRecord]) -> tuple[OpenMarks, list[Mark]]:
    marking = Marking(schemas, schemas, {}, {})
    known = statements(*marking.between(records))
    marks = [mark for record in records for mark in marking.marks(record)]
    return OpenMarks(marking, known, Explained(schemas, known, {}, {}, ())), marks


def test_as_many_tables_as_there_are_may_be_altered_at_once() -> None:
    shapes, records = of_many("VARCHAR(200)", length=200)
    still, marks = opened(Schemas(shapes), records)
    assert len(marks) == MANY
    assert [mark.name for mark in marks if still.has(mark)] == []


def test_none_of_them_is_told_as_done_by_no_statement() -> None:
    shapes, records = of_many("VARCHAR(20) NOT NULL", nullable=False)
    schemas = Schemas(shapes)
    still, marks = opened(schemas, records)
    assert all(map(still.has, marks)), "each has its own mark"
    histories = [History(schemas.all(*name), 1, [], False, None, []) for name in schemas.tables()]
    unlogged = [mark for one in histories for new in one.new() for mark in new.marks]
    assert (len(unlogged), [mark for mark in unlogged if still.has(mark)]) == (MANY, [])


def test_the_tables_are_asked_for_once_however_many_statements_there_are() -> None:
    shapes, records = of_many("VARCHAR(200)", length=200)
    schemas = Asked(shapes)
    still, marks = opened(schemas, records)
    assert not any(map(still.has, marks))
    assert schemas.times == 1


def test_a_rarely_written_table_is_carried_after_many_statements_on_another(spark: SparkSession, lake: Lake) -> None:
    followed = Followed(spark, lake)
    followed.schemas.append(LINES.model_copy(update={"since": Sequence(0, 1, 10)}))
    assert followed.run(ddl(50, statement="ALTER TABLE items MODIFY name VARCHAR(200)")) == {NAME}
    many = [
        ddl(100 + n, "partition", table="lines", statement="ALTER TABLE lines DROP PARTITION p") for n in range(KEPT)
    ]
    assert followed.run(*many, ddl(9000, "partition", table="lines")) == {NAME, OTHER}
    followed.schemas.append(shape(2, 9999, ID, WIDE, PRICE))
    assert followed.run() == {OTHER}


def test_of_one_table_the_last_ones_are_kept_and_what_is_forgotten_leaves_none_alone() -> None:
    places = [(0, 1, n) for n in range(2 * KEPT)]
    known = statements([(*NAME, seq) for seq in reversed(places)], [])
    assert known.lists()[0] == [(*NAME, seq) for seq in places[-KEPT:]]
    first = places[KEPT]
    assert known.between(NAME, (0, 1, 5), (0, 1, KEPT + 1)) is None, "others stood before the first that is known"
    assert known.between(NAME, first, (0, 1, KEPT + 2)) == {places[KEPT + 1]}
    assert known.between(OTHER, (0, 0, 0), (9, 9, 9)) == set()


def drop(pos: int) -> Mark:
    return Mark(**ddl(pos, "drop").model_dump())


def test_of_a_dropped_table_the_drop_alone_is_kept() -> None:
    known = statements(
        [(*NAME, (0, 1, n)) for n in (5, 6, 9)] + [(*OTHER, (0, 1, 2))], [(*NAME, (0, 1, n)) for n in (4, 8)]
    )
    left = known.since_drops([drop(6), Mark(**ddl(9).model_dump())])
    assert left.lists() == ([(*NAME, (0, 1, 6)), (*NAME, (0, 1, 9)), (*OTHER, (0, 1, 2))], [(*NAME, (0, 1, 8))])
    assert left.between(NAME, (0, 1, 1), (0, 1, 9)) == {(0, 1, 6), (0, 1, 8)}, "no ALTER of before is the only one"
    assert known.since_drops([]) == known


@pytest.mark.parametrize("anew", [False, True], ids=["gone for good", "made again and read"])
def test_a_table_that_is_dropped_has_no_more_statements_from_the_next_run_on(
    spark: SparkSession, lake: Lake, anew: bool
) -> None:
    followed = Followed(spark, lake)
    followed.run(ddl(20, "partition"), ddl(30), ddl(35, "shape"), ddl(40, "drop", statement="DROP TABLE items"))
    state = Evolution(spark, lake, Schemas([])).state
    assert len(state.altered) == 3, "a shape of before may be known by the next run only"
    if anew:
        followed.floors[NAME] = [0, 1, 90, -1, -1]
    assert followed.run() == (set() if anew else {NAME})
    state = Evolution(spark, lake, Schemas([])).state
    assert len(state.altered) == (3 if anew else 1)
    assert (state.altered[-1], len(state.shaped)) == ((*NAME, (0, 1, 40)), 1 if anew else 0)
    assert followed.run() == (set() if anew else {NAME})
