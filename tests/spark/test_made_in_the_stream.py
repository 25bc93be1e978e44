"""A table that was made under the streamer's eyes has no snapshot, and needs none: it is mended as any other."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract.ddl_record import DdlRecord
from contract.pipeline import Pipeline, Tables
from contract.sequence import Sequence
from contract.shown_by import Rule
from contract.status import TableStatus, parse
from spark.compaction import compaction
from spark.errors import LakeError, TableError
from spark.jobs import backfill as job
from spark.jobs.backfill import backfill
from spark.lake.lake import Lake
from spark.mending.choice import blocked
from spark.mending.made import made, makes
from spark.mending.rebuilt import Rebuild
from spark.merging.parts import KAFKA, Chosen
from spark.tables.schema import Schemas
from tests.spark.changes_by_hand import ITEMS, change
from tests.spark.lake_by_hand import AT, NAME, checkpoint, ids, item, land, part, seq, stage
from tests.spark.test_repair import damage

Compact = Callable[[], dict[str, Any]]
MADE = DdlRecord(
    db="shop", table="items", kind="shape", statement="CREATE TABLE items (id int PRIMARY KEY)", seq=(0, 1, 5), ts_ms=9
)
RIGHT = [(1, "a"), (2, "b"), (4, "d")]
BORN = ITEMS.model_copy(update={"since": Sequence(*seq(7))})


@pytest.fixture
def born(spark: SparkSession, lake: Lake, compact: Compact, monkeypatch: pytest.MonkeyPatch) -> Compact:
    """What compacts. The table: 1 is as it was made, 2 was updated since, 3 deleted, 4 made; all of it streamed."""

    class Broker(compaction.Broker):
        def __init__(self, pipeline: Pipeline) -> None:
            super().__init__(pipeline)
            self.ddl = lambda read: ([MADE], {})
            self.schemas = lambda: [BORN]

    monkeypatch.setattr(compaction, "Broker", Broker)
    monkeypatch.setattr(job, "Broker", Broker)
    land(spark, lake, *(change(seq(6 + n), "c", item(n)) for n in (1, 2, 3)))
    land(spark, lake, change(seq(AT), "u", item(2, "b")), change(seq(AT + 1), "d", item(3)))
    land(spark, lake, change(seq(AT + 2), "c", item(4, "d")))
    compact()
    assert (ids(spark, lake), table(lake).snapshot, table(lake).doubts()) == (RIGHT, None, [])
    return compact


def table(lake: Lake) -> TableStatus:
    return parse(lake.text(lake.status) or "").tables["shop.items"]


@pytest.mark.soak
def test_it_is_made_anew_of_its_changes_alone(spark: SparkSession, lake: Lake, born: Compact) -> None:
    def wrong(**given: str) -> dict[str, int]:
        [id] = backfill(spark, lake.pipeline, ["shop.items"], **given)["parts"]
        rows: dict[str, int] = born()["parts"][id]["rows"]
        return rows

    damage(spark, lake, (1, "x"), (3, "a"), (4, "d"), (9, "a"))
    assert wrong(keys="[3]") == {"extra": 1}
    assert wrong() == {"changed": 1, "extra": 1, "missing": 1}
    assert ids(spark, lake) == RIGHT
    [staged] = backfill(spark, lake.pipeline, ["shop.items"], keys="[1, 2]")["parts"]
    part(spark, lake, "0", AT + 3, item(2, "not logged"), keys=[item(2)])  # a repair: put in its place first
    assert "rows (1) were mended from the source meanwhile" in born()["parts"][staged]["refused"]
    assert ids(spark, lake) == [(1, "a"), (2, "not logged"), (4, "d")]
    with pytest.raises(LakeError, match="1 of these rows were mended from the source since the beginning of the table"):
        wrong(keys="[2]")
    [staged] = backfill(spark, lake.pipeline, ["shop.items"], keys="[1]")["parts"]
    stage(spark, lake, "1", AT + 5, item(1), item(2, "b"))
    assert "the snapshot 1 has read all of shop.items since" in born()["parts"][staged]["refused"]


def test_it_is_made_of_changes_only_where_all_of_them_are_there(
    spark: SparkSession, lake: Lake, born: Compact, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(told: str, **given: str) -> None:
        with pytest.raises(LakeError, match=told):
            backfill(spark, lake.pipeline, ["shop.items"], **given)
        assert lake.list(lake.at("_parts")) == []

    lake.write(lake.at("_history.json"), {"tables": {"shop.items": {"begins": 1_000, "removed": 1}}})
    refused("the changes of before 1970-01-01 00:00 UTC were removed .*and the beginning of the table is older")
    lake.delete(lake.at("_history.json"))
    floors = list[Any]()

    def gone(*given: Any) -> Any:
        floors.append(given[3:])
        raise LakeError("Kafka has it no more")

    monkeypatch.setattr("spark.mending.rebuilt.sent", gone)
    refused("Kafka has it no more", source=KAFKA)
    assert floors == [([0, 1, 5, -1, -1], "the beginning of the table")]
    land(spark, lake, change(seq(4), "c", item(8)))
    born()
    refused("shop.items has no snapshot, and nothing proves .*no change of before.*take the rows from MySQL")

    until = datetime(2027, 1, 1, tzinfo=UTC)
    times = work(spark, lake).keys(datetime(2026, 1, 1, tzinfo=UTC), until)
    assert times == tuple(f'{{"id":{n}}}' for n in (1, 2, 3, 4, 8)), "of a backfill from MySQL, which is right anyhow"


def work(spark: SparkSession, lake: Lake) -> Rebuild:
    status = parse(lake.text(lake.status) or "")
    assert blocked(lake, status, NAME) is None
    return Rebuild(spark, lake, status, Schemas([BORN]), NAME)


def test_it_was_followed_by_one_list_and_by_the_rules_of_now_since(
    spark: SparkSession, lake: Lake, born: Compact, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = checkpoint(1000)
    found = made(spark, lake, NAME, here)
    assert found is not None
    assert (found.id, found.floor, found.p0_ms) == ("", [0, 1, 5, -1, -1], 9)
    assert made(spark, lake, ("shop", "others"), here) is None
    both, crm = Tables(include=("shop.*", "crm.*")), Tables(include=("crm.*",))
    rules = Rule(tables=("shop.items",), mark="m"), Rule(tables=("shop.others",), mark="m")
    for pos, proven in ((5, True), (6, False)):
        before = checkpoint(pos)
        assert (made(spark, lake, NAME, before.without_snapshots(before.place)) is not None) == proven
        assert (made(spark, lake, NAME, before.following(crm).following(both)) is not None) == proven
        assert (made(spark, lake, NAME, before.model_copy(update={"forgotten": before.place})) is not None) == proven
        shown = before.showing("a", ()).showing("b", rules[:1])
        assert (made(spark, lake, NAME, shown) is not None) == proven
        assert made(spark, lake, NAME, before.showing("a", ()).showing("b", rules[1:])) is not None
    monkeypatch.setattr("spark.mending.rebuilt.made", lambda *_: None)
    with pytest.raises(TableError, match=r"nothing proves .* without IF NOT EXISTS.*take the rows from MySQL instead"):
        work(spark, lake).stage(Chosen("the whole table"))

    def unread(until: int) -> str | None:
        class Moved(compaction.Broker):
            def __init__(self, pipeline: Pipeline) -> None:
                super().__init__(pipeline)
                self.checkpoint = lambda: checkpoint(1000).without_snapshots((0, 1, until))

        with monkeypatch.context() as patched:
            patched.setattr(compaction, "Broker", Moved)
            born()
        return table(lake).unread

    assert unread(7) is None, "its first row is of then"
    assert (unread(8) or "").startswith("not yet snapshotted: it was not followed for a time, or counts as such")
    reason = blocked(lake, parse(lake.text(lake.status) or ""), NAME)
    assert reason is not None
    assert "is to be read as a whole: not yet snapshotted" in reason


@pytest.mark.parametrize(
    ("statement", "certain"),
    [
        ("CREATE TABLE items (id int)", True),
        ("\n/* an ORM's */ create table `shop`.`items`(id int)", True),
        ("CREATE TABLE shop . items LIKE others", True),
        ("CREATE TABLE IF NOT EXISTS items (id int)", False),
        ("CREATE TABLE /*!32312 IF NOT EXISTS*/ items (id int)", False),
        ("/*!40000 CREATE TABLE items (id int) */", False),
        ("CREATE OR REPLACE TABLE items (id int)", False),
        ("CREATE TABLE others LIKE items", False),
        ("CREATE TABLE other.items (id int)", False),
        ("ALTER TABLE items ADD c int", False),
        ("CREATE TABLE `if` (id int)", False),
    ],
)
def test_which_statement_makes_it_for_certain(statement: str, certain: bool) -> None:
    assert makes(statement, NAME) == certain
