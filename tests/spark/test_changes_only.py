"""Tables of which the lake keeps the changes alone: what the lake has of them, and how they become others, and back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract import names
from contract.pipeline import Pipeline
from contract.schema import Column, TableSchema
from contract.sequence import Sequence
from contract.status import LakeStatus, TableStatus, parse
from readers.errors import LakeReadError
from readers.lake import query
from spark.compaction import compaction
from spark.errors import LakeError
from spark.history.history import History, views
from spark.history.retention import Retention
from spark.job import JobFailedError
from spark.jobs.erase import _refuse_unfit
from spark.lake.lake import Lake
from spark.lake.stopped import StoppedTables
from spark.landing.changes import Landing
from spark.maintenance.maintenance import Maintaining
from spark.mending.choice import blocked
from spark.source.choice import chosen
from spark.tables.changes_only import KEPT, tidy
from tests.spark.changes_by_hand import ITEMS, compact_json, record, records
from tests.spark.lake_by_hand import checkpoint, seq, stage
from tests.spark.test_erasing import COUNTED, GONE, erasing, filled, holding, stats
from tests.spark.test_history import CHANGE
from tests.spark.test_renames import Broker, ddl

__all__ = ["stats"]  # a fixture
NAME = ("shop", "clicks")
CLICKS = TableSchema(
    db="shop", table="clicks", version=1, key=(), since=Sequence(0, 1, 1),
    columns=(Column(name="page", type="int"), Column(name="name", type="varchar", length=9)),
)  # fmt: skip
KEYED = CLICKS.model_copy(
    update={"key": ("page",), "columns": (Column(name="page", type="int", nullable=False), CLICKS.columns[1])}
)
ONLY = {"tables": ["shop.cl*"], "changes_only": True}
TOLD = r"the pipeline file keeps the changes alone of shop\.clicks \(keys, changes_only\)"

Compact = Callable[..., dict[str, Any]]


def ruled(pipeline: Pipeline, *keys: dict[str, Any]) -> Pipeline:
    given = {**pipeline.model_dump(), "source": pipeline.source, "path": pipeline.path, "keys": keys}
    return Pipeline.model_validate(given)


@pytest.fixture
def plain(pipeline: Pipeline) -> Pipeline:
    """As it is without the rule."""
    return pipeline


@pytest.fixture
def only(pipeline: Pipeline) -> Pipeline:
    return ruled(pipeline, ONLY)


@pytest.fixture
def compact(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Compact:
    """A whole run with these shapes and statements in the topics."""
    monkeypatch.setattr(compaction, "Broker", Broker)

    def run(pipeline: Pipeline, *told: Any) -> dict[str, Any]:
        monkeypatch.setattr(Broker, "schemas_", tuple(one for one in told if isinstance(one, TableSchema)))
        monkeypatch.setattr(Broker, "ddl_", tuple(one for one in told if not isinstance(one, TableSchema)))
        return compaction.compact(spark, pipeline)

    return run


def click(pos: int, after: dict[str, Any], schema: TableSchema = CLICKS, op: str = "c") -> tuple[Any, ...]:
    key = compact_json({name: after[name] for name in schema.key}) if schema.key else None
    at = datetime(2026, 1, 1, tzinfo=UTC)
    image = (None, compact_json(after))
    return "shop", "shop.clicks", key, op, *image, schema.version, seq(pos), f"u:{pos}", at


def land(spark: SparkSession, lake: Lake, *rows: tuple[Any, ...]) -> None:
    spark.createDataFrame(list(rows), CHANGE).write.format("delta").mode("append").save(lake.changes)


def status(lake: Lake, table: str = "shop.clicks") -> TableStatus:
    return parse(lake.text(lake.status) or "").tables[table]


def seen(spark: SparkSession, pipeline: Pipeline, columns: str) -> list[tuple[Any, ...]]:
    """What both readers have of the table's changes, which is the same."""
    History(spark, Lake(spark, pipeline), *NAME).changes().createOrReplaceTempView("told")
    found = [tuple(row) for row in spark.sql(f"SELECT {columns} FROM told").collect()]
    assert list(query(pipeline, f"SELECT {columns} FROM clicks_changes").rows()) == found
    return found


def test_changes_land_once_each_and_are_all_that_readers_see(
    spark: SparkSession, only: Pipeline, compact: Compact
) -> None:
    lake = Lake(spark, only)
    rows = [(None, *record(n, seq(n), "c", {"page": 7, "name": "x"}, schema=CLICKS)[1:]) for n in (1, 2)]
    other = record(3, seq(3), "c", {"id": 1, "name": "a", "price": None}, partition=1)
    for number in (0, 1):  # a replay
        Landing(spark, only, lake)._batch(records(spark, *rows, other), number, "q")
    report = compact(only, CLICKS, ITEMS)
    told = status(lake)
    assert (told.changes_only, told.stopped, told.changes, told.version, told.doubts()) == (True, None, 2, None, [])
    assert told.freshness_ms == checkpoint(1000).ts_ms
    assert (report["tables"]["shop.clicks"]["rows"], report["tables"]["shop.clicks"]["changes_only"]) == (None, True)
    assert (status(lake, "shop.items").rows, "changes_only" in report["tables"]["shop.items"]) == (1, False)
    assert seen(spark, only, "op, key, before, after.page, after.name") == [("c", None, None, 7, "x")] * 2
    assert not lake.exists(names.lake_table(only, *NAME))
    compact(only, CLICKS, ITEMS)
    assert status(lake).changes == 2

    for asked in ("clicks", "shop.clicks", "clicks_history", "clicks_as_of('2026-11-22 10:42:00+00')"):
        with pytest.raises(LakeReadError, match=rf"^{TOLD}: ask for clicks_changes$"):
            query(only, f"SELECT * FROM {asked}")
    assert list(query(only, "SELECT count(*) AS clicks FROM items").rows()) == [(1,)]
    history = History(spark, lake, *NAME)
    for refused in (history.now, history.versions, lambda: history.as_of(datetime.now(UTC))):
        with pytest.raises(LakeError, match=TOLD):
            refused()
    views(spark, lake, [NAME, ("shop", "items")])
    assert spark.sql("SELECT count(*) FROM clicks_changes").collect() == [(2,)]
    for name in ("clicks", "clicks_history"):
        with pytest.raises(Exception, match=TOLD):
            spark.sql(f"SELECT count(*), max(page) FROM {name}").collect()


@pytest.mark.soak
def test_columns_that_come_get_other_names_or_other_types_are_in_all_changes(
    spark: SparkSession, only: Pipeline, compact: Compact
) -> None:
    lake = Lake(spark, only)
    label = CLICKS.columns[1].model_copy(update={"name": "label"})
    renamed = CLICKS.model_copy(
        update={"version": 2, "since": Sequence(0, 1, 60), "columns": (CLICKS.columns[0], label)}
    )
    more = Column(name="Note", type="varchar", length=9)
    wider = renamed.model_copy(update={"version": 3, "since": Sequence(0, 1, 70), "columns": (*renamed.columns, more)})
    page = Column(name="page", type="varchar", length=9)
    retyped = wider.model_copy(update={"version": 4, "since": Sequence(0, 1, 80), "columns": (page, label, more)})
    shapes = [CLICKS, renamed, wider, retyped]
    land(spark, lake, click(10, {"page": 1, "name": "a"}))
    compact(only, CLICKS)
    land(spark, lake, click(61, {"page": 2, "label": "b"}, renamed))
    land(spark, lake, click(71, {"page": 3, "label": "c", "Note": "n"}, wider))
    land(spark, lake, click(81, {"page": "x", "label": "d", "Note": "m"}, retyped))
    found = ddl(table="clicks", statement="ALTER TABLE clicks RENAME COLUMN name TO label")
    report = compact(only, *shapes, found)
    assert status(lake).stopped is None
    assert seen(spark, only, "after.page, after.label, after.Note") == [
        ("1", "a", None), ("2", "b", None), ("3", "c", "n"), ("x", "d", "m"),
    ]  # fmt: skip
    assert any("retyped page" in line and "keeps the changes alone" in line for line in report["schema_changes"])
    bad = wider.model_copy(update={"version": 5, "columns": (Column(name="a b", type="int"),)})
    land(spark, lake, click(91, {"a b": 1}, bad))
    with pytest.raises(JobFailedError, match="'a b'"):
        compact(only, *shapes, bad, found)
    assert (status(lake).stopped is not None, status(lake).changes) == (True, 5)
    compact(only, *shapes, bad.model_copy(update={"columns": wider.columns}), found)
    assert (status(lake).stopped, status(lake).changes) == (None, 5)


def test_a_table_becomes_one_of_changes_alone_and_again_one_with_rows(
    spark: SparkSession, plain: Pipeline, only: Pipeline, compact: Compact
) -> None:
    lake, path = Lake(spark, plain), names.lake_table(plain, *NAME)

    def rows() -> list[tuple[Any, ...]]:
        return sorted(map(tuple, spark.read.format("delta").load(path).select("page", "name").collect()))

    stage(spark, lake, "0001", 100, {"page": 1, "name": "a"}, of=KEYED)
    land(spark, lake, click(101, {"page": 2, "name": "b"}, KEYED))
    compact(plain, KEYED)
    assert (rows(), status(lake).changes_only) == ([(1, "a"), (2, "b")], False)

    compact(only, KEYED)  # without a change since, its columns are known
    assert (status(lake).changes_only, status(lake).version, status(lake).snapshot) == (True, None, None)
    assert seen(spark, only, "after.page") == [(2,)]
    stage(spark, lake, "0002", 101, {"page": 9, "name": "of before"}, of=KEYED)
    land(spark, lake, click(102, {"page": 1, "name": "c"}, KEYED, "u"), click(103, {"page": 3, "name": "d"}, KEYED))
    compact(only, KEYED)
    assert (rows(), status(lake).changes, status(lake).doubts()) == ([(1, "a"), (2, "b")], 3, [])
    assert seen(spark, only, "after.page") == [(2,), (1,), (3,)]

    land(spark, lake, click(104, {"page": 4, "name": "e"}, KEYED))
    compact(plain, KEYED)
    told = status(lake)
    assert (told.changes_only, told.changes, told.snapshot) == (False, 4, None)
    assert "not yet snapshotted" in (told.unread or "")
    assert rows() == [(1, "c"), (2, "b"), (3, "d"), (4, "e")], "what came meanwhile is not lost"
    assert StoppedTables(lake).tables == {}
    tidy(lake, parse(lake.text(lake.status) or ""))
    assert lake.list(lake.at(names.SHAPES, "shop")) == []

    stage(spark, lake, "0003", 105, {"page": 5, "name": "f"}, of=KEYED)
    compact(plain, KEYED)
    assert (rows(), status(lake).unread, status(lake).rows) == ([(5, "f")], None, 1)


def test_a_table_without_a_key_that_gets_one_waits_for_a_snapshot(
    spark: SparkSession, plain: Pipeline, only: Pipeline, compact: Compact
) -> None:
    lake, keyed = Lake(spark, plain), KEYED.model_copy(update={"version": 2, "since": Sequence(0, 1, 50)})
    land(spark, lake, click(10, {"page": 1, "name": "a"}), click(11, {"page": 1, "name": "a"}))
    with pytest.raises(JobFailedError, match=r"shop\.clicks has no primary key.*changes_only: true"):
        compact(plain, CLICKS)
    assert status(lake).changes == 0
    compact(only, CLICKS)
    assert (status(lake).stopped, status(lake).changes) == (None, 2)
    assert [(stop.reason, stop.kept) for stop in StoppedTables(lake).tables.values()] == [(KEPT, True)]

    land(spark, lake, click(51, {"page": 2, "name": "b"}, keyed))
    chosen_key = ruled(plain, {"tables": ["shop.clicks"], "columns": ["page"]})
    with pytest.raises(JobFailedError, match="it had no key, and its changes of then cannot be merged: run the snap"):
        compact(chosen_key, CLICKS, keyed)
    assert status(lake).changes == 3
    stage(spark, lake, "0001", 60, {"page": 2, "name": "b"}, of=keyed)
    compact(chosen_key, CLICKS, keyed)
    told = status(lake)
    assert (told.stopped, told.rows, told.changes, told.snapshot is not None) == (None, 1, 3, True)


def test_jobs_of_rows_leave_it_out_and_refuse_it_by_name(
    spark: SparkSession, only: Pipeline, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = [NAME, ("shop", "items")]
    source: Any = SimpleNamespace(tables=lambda: tables, versioned=list)
    assert chosen(only, source, []) == [("shop", "items")]
    assert "left out: the pipeline file keeps the changes alone of shop.clicks" in capsys.readouterr().out
    with pytest.raises(LakeError, match=f"{TOLD}, so there are no rows to read or to compare: name other tables"):
        chosen(only, source, ["shop.clicks", "shop.items"])
    del tables[1]
    with pytest.raises(LakeError, match=TOLD):
        chosen(only, source, [])
    table = TableStatus(db="shop", table="clicks", rows=0, changes=1, changes_only=True)
    known = LakeStatus(
        pipeline="shop", run=1, written_at=0, seconds=1, checkpoint=None, changes_version=0,
        tables={"shop.clicks": table},
    )  # fmt: skip
    lake = Lake(spark, only)
    assert str(blocked(lake, known, NAME)).startswith("the pipeline file keeps the changes alone of shop.clicks")

    with pytest.raises(LakeError, match=r"shop\.clicks has no key.*maintenance\.history_days"):
        _refuse_unfit(lake, CLICKS)
    _refuse_unfit(lake, KEYED)
    lake.write(names.lake_table(only, *NAME) + "/rows.json", {})
    with pytest.raises(LakeError, match=f"{TOLD}, and .*/shop/clicks has the rows of before.*remove that folder"):
        _refuse_unfit(lake, KEYED)


def test_its_changes_go_by_their_age_though_it_waits_with_them(spark: SparkSession, only: Pipeline) -> None:
    lake = Lake(spark, only)
    for name in (NAME, ("shop", "items")):
        StoppedTables(lake).stop(name, [0, 1, 1, 0, 0], KEPT, kept=True)
    kept = Retention(spark, lake, LakeStatus.model_construct(), 30)._places()
    assert [table for table, *_ in kept] == ["shop.items"]


@pytest.mark.soak  # a minute; each by itself: test_erasing.py, test_maintaining.py
def test_changes_of_a_key_are_erased_and_the_empty_table_is_looked_after(
    stats: None, spark: SparkSession, pipeline: Pipeline
) -> None:
    only = ruled(pipeline, {"tables": ["shop.items"], "changes_only": True})
    lake = Lake(spark, only)
    filled(spark, lake)
    assert holding(lake, GONE)
    begun = erasing(spark, lake).run()
    assert begun.removed == COUNTED | {"table": 0}
    assert holding(lake, GONE) == []
    told = status(lake, "shop.items")
    assert (told.changes, told.rows, told.changes_only) == (2, 0, True)
    assert "its changes may not be all: records of its topic" in (told.unequal or "")
    assert [row[0] for row in query(only, "SELECT after.id FROM items_changes").rows()] == [2, 3]
    done = Maintaining(spark, lake).run()["tables"]
    assert (done["shop.items"]["files"], done["_changes"]["files_after"] > 0) == (0, True)
    assert [row[0] for row in query(only, "SELECT after.id FROM items_changes").rows()] == [2, 3]
