"""A shape that differs so that stored values may have changed, and no statement in the DDL topic says it: a replica
alone ran it (sql_log_bin=0), before it became the source. And a statement that comes when its table does not count.
"""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from contract.schema import Column
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
    ],
    ids=["narrowed", "nullability", "retyped"],
)
def test_the_table_is_stale_until_a_snapshot_from_behind_it(spark: SparkSession, lake: Lake, column: Column) -> None:
    followed = Followed(spark, lake)
    assert followed.run() == set()
    followed.schemas = [FIRST, shape(2, 60, ID, column, PRICE)]
    found = followed.run()
    assert [rule for _, _, rule in followed.rows()] == ["stale"]
    assert found == {NAME}
    [reason] = [stale.reason for stale in Evolution(spark, lake, Schemas([])).stale().values()]
    assert "the source's binlog has no statement that did it" in reason
    assert followed.run() == {NAME}
    followed.floors[NAME] = [0, 1, 61, -1, -1]
    assert followed.run() == set()


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
