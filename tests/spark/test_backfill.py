"""A table, or a part of it, made anew out of its history: the rows that it would have, however often; or why not."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract import status
from contract.pipeline import Pipeline
from spark.compaction import compaction
from spark.errors import LakeError, TableError
from spark.job import JobFailedError
from spark.jobs import backfill as job
from spark.jobs.backfill import backfill
from spark.lake.applied import AppliedSnapshots
from spark.lake.lake import Lake
from spark.lake.lost import Loss, Losses
from spark.maintenance.tidying import vacuum
from spark.mending.choice import Form
from spark.mending.unfound import Unfound, unfound
from spark.merging.mended import mended
from spark.merging.parts import MANIFEST
from tests.spark.changes_by_hand import ITEMS, change, truncation
from tests.spark.lake_by_hand import AT, NAME, checkpoint, ids, item, land, part, seq, stage
from tests.spark.test_repair import damage

Compact = Callable[[], dict[str, Any]]
Made = Callable[..., dict[str, int]]
RIGHT = [(1, "a"), (2, "b"), (4, "d"), (7, "g")]


@pytest.fixture
def made(
    spark: SparkSession, pipeline: Pipeline, lake: Lake, compact: Compact, monkeypatch: pytest.MonkeyPatch
) -> Made:
    """Backfills the table, and gives what was not as it is to be. The table: 1 is as the snapshot read it, 2 was
    updated since, 3 deleted, 4 made, 7 made behind the lake's checkpoint."""

    class Broker:
        def __init__(self, pipeline: Pipeline) -> None:
            self.schemas = lambda: [ITEMS]
            self.checkpoint = lambda: checkpoint(1000)

    monkeypatch.setattr(job, "Broker", Broker)
    stage(spark, lake, "1", 50, *(item(n) for n in (1, 2, 3)))
    land(spark, lake, change(seq(7), "c", item(9)), change(seq(AT), "u", item(2, "b")))  # 9: before the snapshot
    land(spark, lake, change(seq(AT + 1), "d", item(3)), change(seq(AT + 2), "c", item(4, "d")))
    land(spark, lake, change(seq(1500), "c", item(7, "g")))
    compact()
    assert ids(spark, lake) == RIGHT

    def run(**given: str) -> dict[str, int]:
        report = backfill(spark, pipeline, ["shop.items"], **given)
        [id] = report["parts"]
        rows: dict[str, int] = compact()["parts"][id]["rows"]
        return rows

    return run


def test_a_table_is_made_of_its_snapshot_and_the_changes_since_and_a_second_time_nothing_is_written(
    spark: SparkSession, lake: Lake, made: Made
) -> None:
    damage(spark, lake, (1, "x"), (3, "a"), (4, "d"), (4, "d"), (9, "a"))
    assert made() == {"changed": 1, "duplicate": 1, "extra": 2, "missing": 2}
    assert ids(spark, lake) == RIGHT
    version = lake.version(lake.table(*NAME))
    assert made() == {}
    assert lake.version(lake.table(*NAME)) == version


@pytest.mark.parametrize(
    ("given", "rows"),
    [
        pytest.param(
            {"from": "1", "to": "2"}, [(1, "a"), (2, "b"), (3, "a"), (8, "x"), (9, "x")], marks=pytest.mark.soak
        ),
        pytest.param({"keys": "[3, 4]"}, [(1, "x"), (4, "d"), (8, "x"), (9, "x")], marks=pytest.mark.soak),
        (
            {"since": "2026-01-01T00:00:00Z", "until": "2026-01-01T00:00:01Z"},
            [(1, "x"), (2, "b"), (4, "d"), (7, "g"), (8, "x")],  # 9 changed in that time, before the snapshot
        ),
        pytest.param(
            {"since": "2026-01-02T00:00:00Z"}, [(1, "x"), (3, "a"), (8, "x"), (9, "x")], marks=pytest.mark.soak
        ),
    ],
)
def test_a_part_of_it_and_no_more(
    spark: SparkSession, lake: Lake, made: Made, given: dict[str, str], rows: list[tuple[int, str]]
) -> None:
    damage(spark, lake, (1, "x"), (3, "a"), (8, "x"), (9, "x"))
    made(**given)
    assert ids(spark, lake) == rows


@pytest.mark.usefixtures("made")
def test_a_key_that_nobody_has_is_named(
    spark: SparkSession, pipeline: Pipeline, lake: Lake, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    damage(spark, lake, (1, "a"), (8, "x"))
    told = backfill(spark, pipeline, ["shop.items"], keys="[2, 77, 8]")["tables"]
    assert told == {"shop.items": {"part": "3 keys", "unfound": 1}}
    assert 'shop.items: no row has the key {"id":77}, neither where rows were read nor in' in capsys.readouterr().out
    told = backfill(spark, pipeline, ["shop.items"], keys="[2, 8]")["tables"]
    assert told == {"shop.items": {"part": "2 keys"}}
    before = list[bool]()
    staged = partial(lake.at, "_parts")
    monkeypatch.setattr(Unfound, "__call__", lambda _, one: before.append(lake.exists(staged(one.id, MANIFEST))))
    backfill(spark, pipeline, ["shop.items"], keys="[2]")
    assert before == [False], "behind that a compaction may take it, with the keys, at any moment"
    read = part(spark, lake, "p1", AT, item(2), keys=[item(n) for n in (2, 8, 9, 10)])
    assert unfound(spark, lake, read) == ['{"id":10}', '{"id":9}']


@pytest.mark.soak
def test_a_table_of_which_nothing_was_changed_is_made_of_its_snapshot(
    spark: SparkSession, pipeline: Pipeline, lake: Lake, compact: Compact, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The schema topic has no shape of a table before its first change."""

    class Broker(compaction.Broker):
        def __init__(self, pipeline: Pipeline) -> None:
            super().__init__(pipeline)
            self.schemas = lambda: [other]

    other = ITEMS.model_copy(update={"table": "others"})
    monkeypatch.setattr(compaction, "Broker", Broker)
    monkeypatch.setattr(job, "Broker", Broker)
    stage(spark, lake, "1", 50, item(1), item(2), item(3))
    compact()

    def made(**given: str) -> dict[str, int]:
        [id] = backfill(spark, pipeline, ["shop.items"], **given)["parts"]
        rows: dict[str, int] = compact()["parts"][id]["rows"]
        return rows

    damage(spark, lake, (1, "x"), (2, "x"), (9, "a"))
    assert made(keys="[2]") == {"changed": 1}
    assert made(since="2026-01-01T00:00:00Z") == {}, "nothing was changed in that time"
    land(spark, lake, change(seq(AT), "c", item(1), other))
    compact()
    assert made() == {"changed": 1, "missing": 1, "extra": 1}
    assert ids(spark, lake) == [(1, "a"), (2, "a"), (3, "a")]
    snapshots = AppliedSnapshots(lake)
    snapshots.note(NAME, snapshots.tables[NAME].model_copy(update={"shape": None}))
    with pytest.raises(
        LakeError, match=r"the schema topic has no shape of it.*an older version.*take the rows from MyS"
    ):
        made()
    assert lake.list(lake.at("_parts")) == []


def test_the_lake_is_waited_for_until_it_has_what_the_last_table_showed() -> None:
    """A GTID set is no text to be compared: `u:1-99` is the greater one."""
    ends = {"a": "u:1-99", "b": "u:1-100"}
    parts = {name: SimpleNamespace(id=name, p1=p1, name=("shop", name), told="all") for name, p1 in ends.items()}
    assert job.Backfill.run(working(parts), [("shop", "a"), ("shop", "b")], Form(), None)["p1"] == "u:1-100"


def working(parts: dict[str, Any]) -> Any:
    """A backfill that stages these; a table that is not among them cannot be had."""

    def stage(name: tuple[str, str]) -> Any:
        if name[1] not in parts:
            raise TableError(f"{'.'.join(name)} cannot be had")
        return parts[name[1]]

    unfound = SimpleNamespace(asked=False, facts={})
    return SimpleNamespace(source="mysql", unfound=unfound, _staging=lambda *_: nullcontext(stage))


def test_a_table_that_cannot_be_had_keeps_no_other_and_is_told(
    pipeline: Pipeline, lake: Lake, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    part = SimpleNamespace(id="p1", p1="", name=("shop", "b"), told="all")
    work = working({"b": part})
    work.run = partial(job.Backfill.run, work)
    monkeypatch.setattr(job, "standing", lambda *_: None)
    monkeypatch.setattr(job, "blocked", lambda *_, **__: None)
    monkeypatch.setattr(job, "Backfill", lambda *_: work)
    with pytest.raises(JobFailedError, match=r"shop\.a cannot be had\. What was asked of shop\.b is staged") as error:
        backfill(lake.spark, pipeline, ["shop.a", "shop.b"])
    assert (error.value.facts["parts"], error.value.facts["passed_by"]) == (
        {"p1": "shop.b"}, {"shop.a": "shop.a cannot be had"},
    )  # fmt: skip
    assert "passed by: shop.a cannot be had" in capsys.readouterr().out
    with pytest.raises(LakeError, match=r"^shop\.a cannot be had; shop\.c cannot be had$"):
        backfill(lake.spark, pipeline, ["shop.a", "shop.c"])


def test_what_cannot_be_made_of_it_is_refused_with_the_next_step(
    spark: SparkSession, pipeline: Pipeline, lake: Lake, compact: Compact, made: Made
) -> None:
    def refused(told: str, tables: str = "shop.items", **given: str) -> None:
        with pytest.raises(LakeError, match=told):
            backfill(spark, pipeline, [tables] if tables else [], **given)
        assert lake.list(lake.at("_parts")) == []

    refused("name the tables", tables="")
    refused("no table shop.other: check its name, or run the snapshot DAG", tables="shop.other")
    refused("crm.x is not one of the pipeline's tables", tables="crm.x")
    refused("source 'mars' is none: choose changes, kafka, mysql", source="mars")
    refused("choose one", keys="[1]", since="2026-01-01T00:00:00Z")
    refused("the wrong way round: from 2 to 1", **{"from": "2", "to": "1"})
    refused("wrong way round", since="2026-01-02T00:00:00Z", until="2026-01-01T00:00:00Z")
    refused("has no zone", since="2026-01-02T00:00:00")
    refused("^key 1 .*is no value of shop.items.id, which is int", keys='["x"]')
    lake.write(lake.at("_history.json"), {"tables": {"shop.items": {"begins": 1_700_000_000_001, "removed": 1}}})
    refused("the changes of before 2023-11-14 22:13 UTC were removed .*take the rows from MySQL")
    refused("nobody knows which rows changed then.*choose a later time", until="2026-01-02T00:00:00Z", source="mysql")
    lake.delete(lake.at("_history.json"))
    Losses(lake).note([Loss(topic="shop.shop.items", partition=0, until=[0, 1, 20, 0, 0])])  # the snapshot has them
    refused("removed from Kafka before they reached the lake, so nobody knows which rows", until="2026-01-02T00:00:00Z")
    damage(spark, lake, (1, "a"))
    part(spark, lake, "p1", AT, item(1), item(2, "not logged"))
    compact()
    refused("of these rows were mended from the source since the snapshot 1.*take the rows from MySQL")
    assert made(keys="[1]") == {}, "none of those"
    snapshots = AppliedSnapshots(lake)
    version = snapshots.tables[NAME].version
    snapshots.note(NAME, snapshots.tables[NAME].model_copy(update={"version": 999}))
    refused("a vacuum removed them", keys="[1]")
    assert version is not None
    snapshots.note(NAME, snapshots.tables[NAME].model_copy(update={"gap": True}))
    compact()
    refused("is to be read as a whole: not yet snapshotted: .*: run the DAG shop.snapshot, or `headrace .*, for it$")
    stage(spark, lake, "2", AT, item(1))
    refused(
        "is to be read as a whole, and a snapshot of it is staged: run the DAG shop.compaction, or .* puts it in place"
    )


@pytest.mark.soak
def test_rows_that_all_changed_since_the_snapshot_do_not_need_what_a_vacuum_removed(
    spark: SparkSession, pipeline: Pipeline, lake: Lake, compact: Compact, made: Made
) -> None:
    def refused(told: str, **given: str) -> None:
        with pytest.raises(LakeError, match=rf"a vacuum removed them.*{told}.*Nothing was written: take the rows from"):
            backfill(spark, pipeline, ["shop.items"], **given)
        assert lake.list(lake.at("_parts")) == []

    damage(spark, lake, (1, "x"), (3, "a"), (4, "x"), (9, "a"))
    assert vacuum(spark, lake, lake.table(*NAME), 0) > 0
    assert made(keys="[2, 3, 4]") == {"changed": 1, "extra": 1, "missing": 1}
    assert ids(spark, lake) == [(1, "x"), (2, "b"), (4, "d"), (9, "a")], "7 was made behind the lake's checkpoint"
    refused("Of the keys that were asked for 2 did not change since: their", keys="[1, 2, 9]")
    refused("Of the keys that were asked for 1 did not change since: their", since="2026-01-01T00:00:00Z")
    refused("All of a table, and a range of it, need them; keys, .* that have all changed since do not")
    land(spark, lake, truncation(seq(AT + 3)), change(seq(AT + 4), "c", item(2, "new")))
    compact()
    damage(spark, lake, (1, "x"), (2, "x"))
    assert made(keys="[1, 2]") == {"changed": 1, "extra": 1}, "nothing of before the truncation is there"
    assert ids(spark, lake) == [(2, "new")]


def without_snapshots(spark: SparkSession, lake: Lake) -> None:
    """Makes `_repairs` what an earlier version of Headrace had written."""
    path = lake.at("_repairs")
    rows = spark.read.format("delta").load(path).drop("snapshot", "p0")
    rows.write.format("delta").mode("overwrite").option("overwriteSchema", "true").save(path)


def applied_at(lake: Lake, hours: float) -> None:
    """The clock of when the snapshot was applied was so far ahead of the one of now."""
    snapshots, at = AppliedSnapshots(lake), int((time.time() + hours * 3600) * 1000)
    snapshots.note(NAME, snapshots.tables[NAME].model_copy(update={"applied_at": at}))


def test_what_was_mended_since_the_snapshot_is_known_by_the_snapshot_and_not_by_a_clock(
    spark: SparkSession, lake: Lake, compact: Compact
) -> None:
    def since(hours: float) -> int:
        applied_at(lake, hours)
        return mended(spark, lake, whole, AppliedSnapshots(lake).tables[NAME])

    stage(spark, lake, "1", 50, item(1), item(2))
    compact()
    whole = part(spark, lake, "p1", AT, item(1), item(2, "not logged"))
    compact()
    assert (since(1), since(-1)) == (1, 1)
    without_snapshots(spark, lake)
    assert (since(1), since(-1)) == (0, 1), "of such a row the time alone is known"
    part(spark, lake, "p2", AT, item(1, "not logged"), item(2, "not logged"))
    compact()
    assert (since(1), since(-1)) == (1, 2)
    stage(spark, lake, "2", AT + 4, item(1), item(2))
    compact()
    assert (since(1), since(-1)) == (0, 1), "what is known to be of before the snapshot is none since"


@pytest.mark.soak  # half a minute
def test_rows_that_were_made_of_another_snapshot_than_the_table_by_now_are_refused(
    spark: SparkSession, pipeline: Pipeline, lake: Lake, compact: Compact, made: Made
) -> None:
    """The second began before they were staged, and read a row behind that for which there is no change."""
    [staged] = backfill(spark, pipeline, ["shop.items"])["parts"]
    stage(spark, lake, "2", AT + 3, item(1, "not logged"), item(2, "b"), item(4, "d"))
    told = compact()["parts"][staged]
    assert "the snapshot 2 has read all of shop.items since" in told["refused"]
    assert ids(spark, lake) == [(1, "not logged"), (2, "b"), (4, "d"), (7, "g")]


@pytest.mark.soak  # half a minute
def test_a_repair_that_comes_between_its_staging_and_its_place_is_not_undone(
    spark: SparkSession, pipeline: Pipeline, lake: Lake, compact: Compact, made: Made
) -> None:
    part(spark, lake, "0", AT + 3, item(2, "not logged"), keys=[item(2)])  # the older one: put in its place first
    [staged] = backfill(spark, pipeline, ["shop.items"], keys="[2]")["parts"]
    [other] = backfill(spark, pipeline, ["shop.items"], keys="[1]")["parts"]
    damage(spark, lake, (1, "x"), (2, "b"), (4, "d"), (7, "g"))
    compact()
    assert ids(spark, lake) == [(1, "a"), (2, "not logged"), (4, "d"), (7, "g")]
    told = status.read(pipeline)
    assert told is not None
    refused = told.parts[staged].refused or ""
    assert refused.startswith("rows (1) were mended from the source meanwhile, and no change says what they are: take")
    assert told.parts[other].refused is None
    assert lake.list(lake.at("_parts")) == []
