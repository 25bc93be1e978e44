"""Old changes go, by days; what is needed stays, and the past says when it begins."""

from __future__ import annotations

import shutil
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract.checkpoint import Checkpoint
from contract.kept_history import FILE
from contract.pipeline import Pipeline
from contract.pipeline_maintenance import Maintenance
from contract.status import LakeStatus, TableStatus
from readers.errors import LakeReadError
from readers.lake import query
from spark.compaction.compaction import UNFINISHED
from spark.compaction.counted import counted
from spark.errors import LakeError
from spark.failpoints import hooked
from spark.history.history import History
from spark.history.retention import Retention, history_of
from spark.lake.applied import AppliedSnapshots
from spark.lake.growing import moment_id
from spark.lake.lake import Lake
from spark.lake.manifests import Manifest
from spark.lake.stopped import StoppedTables
from spark.lake.unfinished import WITHIN, Beating, Plan, Progress, Unfinished
from spark.lake.unfinished import Part as StagedPart
from spark.maintenance.maintenance import Maintaining, behind
from spark.maintenance.tidying import join_small_files, vacuum
from spark.merging.handoff import apply_ready
from spark.merging.parts import Part, begin
from spark.merging.tables import Merging
from spark.tables.schema import Schemas, prepare
from tests.spark.changes_by_hand import ITEMS, LINES, Row, compact_json, key_of
from tests.spark.lake_by_hand import staged, unwatched
from tests.spark.sessions import pipeline_in

NOW = datetime.now(UTC)
CHANGE = (
    "db string, tbl string, key string, op string, before string, after string, schema int, "
    "_seq struct<epoch:bigint,file:bigint,pos:bigint,event:bigint,row:bigint>, gtid string, ts timestamp"
)
TABLES = {"items": ITEMS, "lines": LINES}


def ago(days: int) -> datetime:
    """Noon of a day."""
    return datetime(NOW.year, NOW.month, NOW.day, 12, tzinfo=UTC) - timedelta(days)


def item(name: str) -> dict[str, Any]:
    return {"id": 1, "name": name, "price": "1.00"}


def change(days: int, op: str, before: Row, after: Row, table: str = "items") -> Any:
    schema, at = TABLES[table], ago(days)
    texts = [compact_json(one) if one else None for one in (before, after)]
    key, seq = key_of(schema, after or before or {}), (0, 1, 1000 - days, 0, 0)
    return "shop", f"shop.{table}", key, op, *texts, 1, seq, f"u:{1000 - days}", at


LINE = {"region": "a", "n": 1, "qty": 1}
CHANGES = [
    change(40, "c", None, item("a")),
    change(20, "u", item("a"), item("b")),
    change(10, "u", item("b"), item("c")),
    change(5, "u", item("c"), item("d")),
    change(30, "c", None, LINE, "lines"),
    change(4, "u", LINE, LINE, "lines"),
]


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    lake = Lake(spark, pipeline_in(tmp_path_factory.mktemp("made")))
    landed = spark.createDataFrame(CHANGES, CHANGE).selectExpr("*", "to_date(ts) AS day")
    landed.coalesce(1).write.format("delta").partitionBy("tbl", "day").save(lake.changes)
    for schema in TABLES.values():
        prepare(spark, lake.table(schema.db, schema.table), schema, schema)
    path = lake.table("shop", "items")
    seq = "named_struct('epoch', 0L, 'file', 1L, 'pos', 995L, 'event', 0L, 'row', 0L)"
    row = spark.sql(f"SELECT 1L AS id, 'd' AS name, CAST(1 AS DECIMAL(10,2)) AS price, {seq} AS _seq, now() AS _ts")
    row.write.format("delta").mode("append").save(path)
    return Path(lake.root)


@pytest.fixture
def lake(lake: Lake, made: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.setattr("spark.maintenance.maintenance.BETWEEN", 0)
    monkeypatch.setattr("spark.history.retention.today", NOW.date)  # also of a run that goes on behind midnight
    shutil.copytree(made, lake.root)
    note_status(lake, ago(0))
    return lake


def checkpoint(pos: int, ts: datetime) -> Checkpoint:
    facts = {"pipeline": "shop", "connector_id": "c", "server_id": 1, "server_uuid": "u", "gtid_set": "", "events": 6}
    at = {"epoch": 0, "file": "binlog.000001", "pos": pos, "ts_ms": int(ts.timestamp() * 1000), "written_at": 0}
    return Checkpoint.model_validate({**facts, **at})


def note_status(lake: Lake, complete: datetime | None) -> LakeStatus:
    at = checkpoint(1000, complete) if complete else None
    tables = {
        f"shop.{name}": TableStatus(
            db="shop", table=name, rows=1, changes=4, version=lake.version(lake.table("shop", name))
        )
        for name in TABLES
    }
    status = LakeStatus(
        pipeline="shop", run=1, written_at=0, seconds=1, checkpoint=at, changes_version=lake.version(lake.changes),
        tables=tables,
    )  # fmt: skip
    lake.write(lake.status, status.model_dump(mode="json"))
    return status


def ages(lake: Lake, table: str = "items") -> list[int]:
    """Of the table's changes, in days."""
    rows = lake.spark.read.format("delta").load(lake.changes).where(f"tbl = 'shop.{table}'").select("ts").collect()
    return sorted((ago(0) - row["ts"].astimezone(UTC)).days for row in rows)


def cut(lake: Lake, days: int, complete: datetime | None = None) -> tuple[dict[str, int], list[str]]:
    """What went, and what was held back."""
    step = Retention(lake.spark, lake, note_status(lake, complete or ago(0)), days)
    return step.run(), step.held_back


ALL = [5, 10, 20, 40]


@pytest.mark.parametrize(("days", "left"), [(40, ALL), (39, [5, 10, 20]), (10, [5, 10]), (9, [5]), (2, [])])
def test_the_boundary_is_a_day(lake: Lake, days: int, left: list[int]) -> None:
    removed, held = cut(lake, days)
    assert ages(lake) == left
    assert removed.get("shop.items", 0) == 4 - len(left)
    assert held == []


def test_the_past_begins_later_and_says_so_to_every_reader(spark: SparkSession, lake: Lake, pipeline: Pipeline) -> None:
    history = History(spark, lake, "shop", "items")
    kept = history.as_of(ago(15))
    assert [row["name"] for row in kept.collect()] == ["b"]
    cut(lake, 9)
    begins = datetime(NOW.year, NOW.month, NOW.day, tzinfo=UTC) - timedelta(9)
    assert history_of(lake).since("shop.items") == begins
    told = rf"the history of shop\.items begins {begins:%Y-%m-%d}T00:00:00"
    with pytest.raises(LakeError, match=told):
        history.as_of(begins - timedelta(seconds=1))
    with pytest.raises(LakeReadError, match=told):
        list(query(pipeline, f"SELECT * FROM items_as_of('{begins - timedelta(seconds=1)}')").rows())
    assert [row["name"] for row in history.as_of(begins).collect()] == ["c"]
    assert [row[0] for row in query(pipeline, f"SELECT name FROM items_as_of('{begins}')").rows()] == ["c"]
    versions = sorted((row["name"], row["valid_from"] is None) for row in history.versions().collect())
    assert versions == [("c", True), ("d", False)]
    assert sorted(query(pipeline, "SELECT name, valid_from IS NULL FROM items_history").rows()) == versions
    assert [row["name"] for row in kept.collect()] == ["b"], "one that was asked for before stays what it was"


@pytest.mark.parametrize("point", ["history begins later", "history removed"])
def test_one_that_was_killed_says_no_wrong_past_and_the_next_goes_on(
    spark: SparkSession, lake: Lake, pipeline: Pipeline, point: str
) -> None:
    def kill(reached: str) -> None:
        if reached == point:
            raise KeyboardInterrupt

    with hooked(kill), pytest.raises(KeyboardInterrupt):
        cut(lake, 9)
    history = History(spark, lake, "shop", "items")
    assert history.changes().count() == 1
    assert len(list(query(pipeline, "SELECT * FROM items_changes").rows())) == 1
    with pytest.raises(LakeError, match=r"history of shop\.items begins"):
        history.as_of(ago(12))
    cut(lake, 9)
    assert ages(lake) == [5]
    assert {table: kept.removed for table, kept in history_of(lake).tables.items()} == {
        "shop.items": 3,
        "shop.lines": 1,
    }


def test_counts_of_changes_keep_those_that_were_removed(lake: Lake) -> None:
    for days in (30, 9, 4):
        cut(lake, days)
    assert (ages(lake), ages(lake, "lines")) == ([], [4])
    whole = {("shop", "items"): 4, ("shop", "lines"): 2}
    stopped = StoppedTables(lake)
    assert counted(lake, stopped) == whole, "also without a status that names the tables"
    assert counted(lake, stopped, only=[("shop", "lines"), ("shop", "new")]) == {
        ("shop", "lines"): 2,
        ("shop", "new"): 0,
    }
    stopped.stop(("shop", "lines"), [0, 1, 0, 0, 0], "its type changed")
    assert counted(lake, stopped) == {**whole, ("shop", "lines"): 1}, "what waits is counted when it is merged"


def test_what_a_stopped_table_waits_for_stays(lake: Lake) -> None:
    StoppedTables(lake).stop(("shop", "items"), [0, 1, 980, 0, 0], "its type changed")
    removed, held = cut(lake, 3)
    assert (ages(lake), ages(lake, "lines")) == ([5, 10, 20], [])
    assert removed == {"shop.items": 1, "shop.lines": 2}
    [told] = held
    assert told.startswith(f"shop.items: changes since {ago(20).date()} are kept, not since {ago(3).date()} alone: ")
    assert told.endswith("it waits for them: its type changed")


def test_what_many_tables_wait_for_is_asked_at_once(lake: Lake) -> None:
    """Of a thousand tables, a question each would take the lake's slot for long."""
    jobs = []
    for name in TABLES:
        StoppedTables(lake).stop(("shop", name), [0, 1, 996, 0, 0], "its type changed")
        context = lake.spark.sparkContext
        context.setJobGroup(name, "")
        step = Retention(lake.spark, lake, note_status(lake, ago(0)), 3)
        needs = step._needs(["shop.items", "shop.lines"])
        jobs.append(len(context.statusTracker().getJobIdsForGroup(name)))
    context.setJobGroup("", "")
    assert [(need.day, need.why) for need in needs["shop.lines"][1:]] == [
        (ago(4).date(), "it waits for them: its type changed")
    ]
    assert len(needs["shop.items"]) == 1, "nothing of it is behind that place"
    assert jobs[0] == jobs[1] > 0


def test_what_a_snapshot_that_waits_needs_stays(spark: SparkSession, lake: Lake) -> None:
    """The row that it read is older than the change of 10 days ago, by which it is left out when it is applied."""
    manifest = Manifest(
        id="s1", pipeline="shop", p0=checkpoint(985, ago(15)), p1="", tables=[ITEMS], counts={"shop.items": 1}
    )
    staged(spark, lake, manifest, item("b"))
    _, held = cut(lake, 3)
    assert ages(lake) == [5, 10]
    assert [told.partition(": the")[2] for told in held] == [" snapshot s1 is not applied yet"]
    apply_ready(spark, lake)
    assert AppliedSnapshots(lake).has(("shop", "items"), "s1")
    assert [row["name"] for row in History(spark, lake, "shop", "items").now().collect()] == ["d"]
    cut(lake, 3)
    assert ages(lake) == []


def test_what_rows_that_are_being_read_for_a_repair_need_stays(lake: Lake) -> None:
    """As of P0: which table's they are nobody tells before they are staged. Of one that died nothing is needed."""
    with Beating(lake, lake.at("_parts", "p1")):
        begin(lake, Part.model_construct(id="p1", p0=checkpoint(990, ago(10))))
        _, held = cut(lake, 3)
    assert (ages(lake), ages(lake, "lines")) == ([5, 10], [4])
    assert all("rows for a repair or backfill are being read" in told for told in held)
    assert cut(lake, 3) == ({"shop.items": 2, "shop.lines": 1}, [])


@pytest.mark.parametrize(("last", "left"), [(0.5, [5, 10]), (2, [])], ids=["may go on", "nobody goes on with it"])
def test_what_a_snapshot_that_did_not_end_needs_stays_while_one_may_go_on_with_it(
    lake: Lake, last: float, left: list[int]
) -> None:
    one = Unfinished(lake, moment_id(ago(15).timestamp()))
    one.begin(Plan(tables=["shop.items"], began=ago(15).timestamp(), landing=None))
    part = StagedPart(rows=1, at=time.time() - last * WITHIN)
    one.note(Progress(shape=ITEMS, made="1", p0=checkpoint(985, ago(15)), parts=[part]))
    _, held = cut(lake, 3)
    assert ages(lake) == left
    assert bool(held) == bool(left)


@pytest.mark.parametrize(("complete", "left"), [(ago(0), []), (ago(9), [5, 10]), (ago(30), [5, 10, 20])])
def test_a_retention_never_passes_a_lake_that_is_behind(lake: Lake, complete: datetime, left: list[int]) -> None:
    _, held = cut(lake, 3, complete)
    assert ages(lake) == left
    assert all(f"the lake is complete up to {complete.date()}" in told for told in held)
    assert bool(held) == bool(left)


def test_nothing_goes_from_a_lake_without_a_place_or_behind_a_killed_compaction(lake: Lake) -> None:
    rules = lake.pipeline.maintenance.model_copy(update={"history_days": 2})
    lake.pipeline = lake.pipeline.model_copy(update={"maintenance": rules})
    note_status(lake, None)
    [first, second] = Maintaining(lake.spark, lake, ["history"]).run()["held_back"]
    assert "shop.items: all changes are kept" in first
    assert "shop.lines: all changes are kept" in second
    note_status(lake, ago(0))
    lake.write(lake.at(UNFINISHED), {"began": 0})
    [told] = Maintaining(lake.spark, lake, ["history"]).run()["held_back"]
    assert told.startswith("_changes: a compaction has not come to its end")
    assert (ages(lake), lake.exists(lake.at(FILE))) == ([5, 10, 20, 40], False)
    lake.delete(lake.at(UNFINISHED))
    report = Maintaining(lake.spark, lake).run(["shop.items"])
    assert (ages(lake), ages(lake, "lines")) == ([], [4, 30])
    assert report["tables"]["shop.items"]["changes_removed"] == 4


def test_the_next_compaction_merges_what_is_new_and_nothing_else(spark: SparkSession, lake: Lake) -> None:
    schemas = Schemas([*TABLES.values()])
    first = Merging(spark, lake, schemas, unwatched(lake))
    first.run()
    assert first.merged == {("shop", "items"): 4, ("shop", "lines"): 2}
    cut(lake, 9)
    join_small_files(spark, lake.changes, Maintenance(small_files=2))
    vacuum(spark, lake, lake.changes, 0)
    new = spark.createDataFrame([change(0, "u", item("d"), item("e"))], CHANGE).selectExpr("*", "to_date(ts) AS day")
    new.write.format("delta").mode("append").save(lake.changes)
    step = Merging(spark, lake, schemas, unwatched(lake))
    step.run()
    assert step.merged == {("shop", "items"): 1}
    assert [row["name"] for row in History(spark, lake, "shop", "items").now().collect()] == ["e"]


def test_a_lake_that_kafka_may_leave_behind_is_warned_of(pipeline: Pipeline, lake: Lake) -> None:
    last = note_status(lake, ago(5))
    assert list(behind(pipeline, last, checkpoint(1000, ago(5)))) == []
    assert list(behind(pipeline, last, checkpoint(1001, ago(2)))) == []
    [told] = behind(pipeline, last, checkpoint(1001, ago(1)))
    assert told.startswith("the lake is 96 h behind the streamer, and Kafka keeps records for 168 h: run the DAG shop.")


def test_by_a_clock_that_is_ahead_nothing_young_goes(lake: Lake, monkeypatch: pytest.MonkeyPatch) -> None:
    """Days that the lake has not come to yet make nothing old."""
    monkeypatch.setattr("spark.history.retention.today", lambda: (NOW + timedelta(400)).date())
    removed, held = cut(lake, 9)
    assert (ages(lake), ages(lake, "lines")) == ([5], [4])
    [told, _] = held
    assert told.startswith(
        f"shop.items: changes since {ago(9).date()} are kept, not since {ago(9 - 400).date()} alone: "
    )
    assert removed == {"shop.items": 3, "shop.lines": 1}
    assert history_of(lake).since("shop.items") == datetime(NOW.year, NOW.month, NOW.day, tzinfo=UTC) - timedelta(9)
