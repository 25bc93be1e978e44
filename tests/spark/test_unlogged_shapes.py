"""A shape that differs so that stored values may have changed, and no statement in the DDL topic says it: a replica
alone ran it (sql_log_bin=0), before it became the source. And a statement that comes when its table does not count.
"""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from contract.checkpoint import OtherRules
from contract.schema import Column, TableSchema
from spark.evolution.evolution import Evolution
from spark.lake.lake import Lake
from spark.tables.schema import Schemas
from tests.spark.changes_by_hand import ITEMS
from tests.spark.test_evolution import FIRST, NAME, Followed, ddl, shape

ID, TEXT, PRICE = ITEMS.columns


@pytest.mark.parametrize(
    "column",
    [
        TEXT.model_copy(update={"length": 3}),  # narrowed: the source may have cut values
        TEXT.model_copy(update={"nullable": False}),  # each NULL became a value
        Column(name="name", type="char", length=20),  # retyped
        PRICE.model_copy(update={"unsigned": True, "precision": 14}),  # retyped, and the lake's type holds both
    ],
    ids=["narrowed", "nullability", "retyped", "retyped to a wider type"],
)
def test_the_table_is_stale_until_a_snapshot_from_behind_it(spark: SparkSession, lake: Lake, column: Column) -> None:
    followed = Followed(spark, lake)
    assert followed.run() == set()
    columns = (ID, TEXT, column) if column.name == PRICE.name else (ID, column, PRICE)
    followed.schemas = [FIRST, shape(2, 60, *columns)]
    found = followed.run()
    assert [rule for _, _, rule in followed.rows()] == ["stale"]
    assert found == {NAME}
    [reason] = [stale.reason for stale in Evolution(spark, lake, Schemas([])).stale().values()]
    assert "the source's binlog has no statement that did it" in reason
    assert followed.run() == {NAME}
    followed.floors[NAME] = [0, 1, 61, -1, -1]
    assert followed.run() == set()


FILLED = Column(name="c", type="int", nullable=False)
EMPTY = Column(name="c", type="int")
LABEL = TEXT.model_copy(update={"name": "label"})


@pytest.mark.parametrize(
    ("columns", "stale"),
    [((*ITEMS.columns, FILLED), True), ((ID, LABEL, PRICE), True), ((*ITEMS.columns, EMPTY), False)],
    ids=["filled", "renamed", "empty"],
)
@pytest.mark.parametrize("kind", ["alter", "shape", None])
def test_a_column_that_each_row_has_a_value_of_is_not_just_null_in_the_lake(
    spark: SparkSession, lake: Lake, columns: tuple[Column, ...], stale: bool, kind: str | None
) -> None:
    followed = Followed(spark, lake)
    followed.run()
    followed.schemas = [FIRST, shape(2, 60, *columns)]
    told = [ddl(50, kind)] if kind else []
    assert followed.run(*told) == ({NAME} if stale or kind == "alter" else set())
    marks = Evolution(spark, lake, Schemas([])).state.marks
    assert [mark.kind for mark in marks] == (["alter"] if kind == "alter" else ["unlogged"] if stale else [])


def test_a_statement_that_changes_no_values_does_not_explain_it(spark: SparkSession, lake: Lake) -> None:
    """An application sends it at each start, and MySQL logs it where the table is there."""
    followed = Followed(spark, lake)
    followed.run()
    followed.schemas = [FIRST, shape(2, 60, ID, TEXT.model_copy(update={"length": 3}), PRICE)]
    assert followed.run(ddl(50, "shape", statement="CREATE TABLE IF NOT EXISTS items (id INT)")) == {NAME}


def test_a_snapshot_that_had_the_new_shape_before_a_row_told_it_has_the_values(spark: SparkSession, lake: Lake) -> None:
    """Of a table that was excluded for a time, too, whose statements nobody sent."""
    followed = Followed(spark, lake)
    followed.run()
    new = shape(2, 60, *ITEMS.columns, FILLED)
    followed.schemas = [FIRST, new]

    def run(floor: int, read: TableSchema) -> set[tuple[str, str]]:
        evolution = Evolution(spark, lake, Schemas(followed.schemas))
        evolution.follow([], {}, {NAME: [0, 1, floor, -1, -1]}, applied={NAME: read})
        return set(evolution.stale())

    assert run(5, new) == {NAME}, "read before the shape of before was there"
    assert run(30, FIRST) == {NAME}
    assert run(30, new.model_copy(update={"version": 0, "since": None})) == set()


def test_a_column_that_the_pipeline_file_shows_from_there_on_is_told_as_such(spark: SparkSession, lake: Lake) -> None:
    followed = Followed(spark, lake)
    followed.run()
    followed.schemas = [FIRST, shape(2, 60, *ITEMS.columns, FILLED)]
    rules = OtherRules(tables=("shop.items",), until=(0, 1, 40), ts_ms=1, rules="before")

    def run(floor: int) -> set[tuple[str, str]]:
        evolution = Evolution(spark, lake, Schemas(followed.schemas))
        evolution.follow([], {}, {NAME: [0, 1, floor, -1, -1]}, [rules], {NAME: FIRST})
        return set(evolution.stale())

    assert run(41) == {NAME}, "the snapshot is by the new rules, and lacks the column"
    assert run(30) == set(), "its status says that the rows of before are shown otherwise"


@pytest.mark.parametrize("late", [False, True], ids=["at once", "by a later run"])
def test_where_the_statement_is_known_it_alone_tells(spark: SparkSession, lake: Lake, late: bool) -> None:
    followed = Followed(spark, lake)
    followed.run()
    followed.schemas = [FIRST, shape(2, 60, ID, TEXT.model_copy(update={"length": 3}), PRICE)]
    statement = ddl(50, statement="ALTER TABLE items MODIFY name VARCHAR(3)")
    if late:
        assert followed.run() == {NAME}
    assert followed.run(statement, read=1) == {NAME}
    marks = Evolution(spark, lake, Schemas([])).state.marks
    assert [(mark.kind, mark.seq) for mark in marks] == [("alter", (0, 1, 50))]


def test_what_the_pipeline_file_changed_in_it_is_no_doing_of_the_source(spark: SparkSession, lake: Lake) -> None:
    followed = Followed(spark, lake)
    followed.run()
    masked = TEXT.model_copy(update={"length": 3, "mask": "truncate(3)"})
    followed.schemas = [FIRST, shape(2, 60, ID, masked, PRICE)]
    assert followed.run() == set()


def test_a_statement_that_is_read_while_the_table_is_excluded_for_a_moment_counts(
    spark: SparkSession, lake: Lake
) -> None:
    """The streamer never takes the edit, and notes no gap; a compaction runs by it."""
    followed, whole = Followed(spark, lake), lake.pipeline
    tables = whole.tables.model_copy(update={"exclude": ("shop.items",)})
    lake.pipeline = whole.model_copy(update={"tables": tables})
    followed.run(ddl(50, statement="ALTER TABLE items ADD COLUMN c INT NOT NULL DEFAULT 5"), read=1)
    lake.pipeline = whole
    assert followed.run() == {NAME}, "the statement is behind what is read of the topic, and does not come again"
