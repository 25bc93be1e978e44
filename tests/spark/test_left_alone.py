"""A MODIFY or CHANGE that leaves its table as it was: a change behind it says so, and nothing else does."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract.ddl_record import DdlRecord
from contract.pipeline import Pipeline
from contract.schema import TableSchema
from contract.sequence import Sequence
from spark.compaction import compaction
from spark.evolution.evolution import Evolution
from spark.lake.lake import Lake
from spark.tables.schema import Schemas
from tests.spark.changes_by_hand import ITEMS, LINES, change, truncation
from tests.spark.lake_by_hand import item, land, seq
from tests.spark.test_evolution import FIRST, NAME, WIDE, Followed, shape
from tests.spark.test_evolution import ddl as older
from tests.spark.test_renames import Broker

ID, TEXT, PRICE = ITEMS.columns
UNTIL = (0, 1, 1000)
HASHED = shape(1, 10, ID, TEXT.model_copy(update={"mask": "hash"}), PRICE)


def ddl(pos: int, statement: str = "ALTER TABLE items MODIFY name varchar(20) DEFAULT 'x'", **more: Any) -> DdlRecord:
    return older(pos, **{"kind": "alter", "statement": statement, "dropped": (), "computed": False, **more})


def row(pos: int, schema: TableSchema = FIRST, epoch: int = 0) -> tuple[Any, ...]:
    return change((epoch, 1, pos, 0, 0), "u", item(1), schema)


@pytest.fixture
def followed(spark: SparkSession, lake: Lake) -> Followed:
    made = Followed(spark, lake)
    made.until = UNTIL
    return made


def test_a_change_of_the_same_shape_behind_it_shows_that_nothing_was_changed(followed: Followed, lake: Lake) -> None:
    assert followed.run(ddl(50)) == {NAME}, "nothing was landed yet"
    land(followed.spark, lake, row(40), change(seq(60), "d", {"region": "a", "n": 1}, LINES))
    assert followed.run() == {NAME}, "what is before it says nothing, nor does another table"
    land(followed.spark, lake, row(60))
    assert followed.run() == set()
    assert Evolution(followed.spark, lake, Schemas([])).state.altered == [], "it counts beside no other one"


def test_what_the_first_change_behind_it_says_is_asked_once(
    followed: Followed, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table may be stale for days, and each round of a looping compaction would read all of its changes since."""
    land(followed.spark, lake, row(60, FIRST.model_copy(update={"version": 2})))
    assert followed.run(ddl(50)) == {NAME}
    monkeypatch.setattr(Lake, "frame", lambda *_: pytest.fail("the changes were read again"))
    assert followed.run() == {NAME}


def test_one_behind_the_other_each_by_its_own_change(followed: Followed, lake: Lake) -> None:
    """And a widening behind them is not in doubt by them."""
    land(followed.spark, lake, row(55), row(65), row(70))
    assert followed.run(ddl(50), ddl(60)) == set()
    assert followed.run(ddl(68)) == set()
    wide = shape(2, 90, ID, WIDE, PRICE)
    followed.schemas.append(wide)
    land(followed.spark, lake, row(90, wide))
    assert followed.run(ddl(80, "ALTER TABLE items MODIFY name varchar(200)")) == set()


@pytest.mark.parametrize(
    ("more", "stale"), [("", set()), (", RENAME TO others", {NAME}), (", RENAME COLUMN id TO ids", {NAME})]
)
def test_a_name_whose_letters_alone_change_their_case_is_one_as_of_before(
    followed: Followed, lake: Lake, more: str, stale: set[Any]
) -> None:
    upper = [column.model_copy(update={"name": column.name.title()}) for column in (TEXT, PRICE)]
    followed.schemas = [FIRST, shape(2, 60, ID, *upper)]
    land(followed.spark, lake, row(60, followed.schemas[1]))
    both = "ALTER TABLE items RENAME COLUMN name TO `Name`, rename column `price` to Price"
    assert followed.run(ddl(50, both + more)) == stale


@pytest.mark.parametrize(
    "records",
    [
        [ddl(50, "ALTER TABLE items MODIFY name varchar(3)"), ddl(51)],
        [ddl(50), older(51, "shape", statement="ALTER TABLE items ADD x INT")],
        [ddl(50, "ALTER TABLE items MODIFY id int AUTO_INCREMENT")],
        [ddl(50, "ALTER TABLE items ENGINE = BLACKHOLE")],
        [ddl(50, computed=True)],
        [ddl(50, dropped=("name",))],
        [ddl(50, renamed=(("name", "other"),))],
        [older(50, statement="ALTER TABLE items MODIFY name varchar(20) DEFAULT 'x'")],
        [ddl(50, kind="partition")],
    ],
    ids=[
        "cut and widened",
        "two",
        "numbered",
        "emptied",
        "computed",
        "dropped",
        "renamed",
        "older streamer",
        "partition",
    ],
)
def test_not_where_rows_may_differ_all_the_same(followed: Followed, lake: Lake, records: list[DdlRecord]) -> None:
    land(followed.spark, lake, row(60))
    assert followed.run(*records) == {NAME}


@pytest.mark.parametrize(
    ("schemas", "landed", "until"),
    [
        ([FIRST, shape(2, 60, ID, TEXT.model_copy(update={"length": 3}), PRICE)], (60, 2, 0), UNTIL),
        ([FIRST], (60, 1, 0), (0, 1, 60)),
        ([FIRST], (60, 1, 0), None),
        ([FIRST], (60, 1, 1), (1, 1, 1000)),
        ([FIRST], (60, 1, 0), (1, 1, 1000)),
        ([HASHED], (60, 1, 0), UNTIL),
    ],
    ids=["another shape", "behind the checkpoint", "no checkpoint", "sent again", "a new epoch", "masked"],
)
def test_nor_by_a_change_that_does_not_show_it(
    followed: Followed, lake: Lake, schemas: list[TableSchema], landed: tuple[int, int, int], until: Any
) -> None:
    pos, version, epoch = landed
    followed.schemas, followed.until = schemas, until
    land(followed.spark, lake, row(pos, FIRST.model_copy(update={"version": version}), epoch), truncation(seq(59)))
    assert followed.run(ddl(50)) == {NAME}


def test_of_a_masked_table_by_another_column_and_of_an_excluded_one(followed: Followed, lake: Lake) -> None:
    followed.schemas = [HASHED, LINES.model_copy(update={"since": Sequence(0, 1, 10)})]
    land(followed.spark, lake, row(60), change(seq(60), "d", {"region": "a", "n": 1}, LINES))
    others = ddl(51, "ALTER TABLE lines MODIFY gone int DEFAULT 1", table="lines")
    assert (
        followed.run(ddl(50, "ALTER TABLE items CHANGE price Price decimal(10, 2) COMMENT 'in EUR'"), others) == set()
    )


def test_a_compaction_goes_by_its_checkpoint(
    spark: SparkSession, pipeline: Pipeline, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction, "Broker", Broker)
    monkeypatch.setattr(Broker, "schemas_", (FIRST,))
    monkeypatch.setattr(Broker, "ddl_", (ddl(50),))
    land(spark, lake, row(40), row(60))
    assert compaction.compact(spark, pipeline)["tables"]["shop.items"]["stale"] is None
