"""The lake's files are looked after, and no reader sees a difference."""

from __future__ import annotations

import json
import os
import re
import shutil
import threading
import time
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from delta.tables import DeltaTable
from pyspark.sql import SparkSession

from contract.status import LakeStatus, TableStatus
from spark.compaction.compaction import UNFINISHED
from spark.errors import LakeError
from spark.failpoints import MAINTENANCE, hooked
from spark.job import JobFailedError
from spark.lake.delta_log import LOG, kept_for
from spark.lake.foreign_commits import same_rows
from spark.lake.lake import Lake
from spark.lake.slot import writing
from spark.landing.foreign import foreign_writes, look, since_last
from spark.maintenance.maintenance import RECORD, Maintaining, maintain
from spark.maintenance.tidying import files_of, vacuum
from spark.merging.tables import Merging
from spark.session import OURS
from spark.tables.merge import OP, as_rows
from spark.tables.schema import Schemas, prepare
from tests.spark.changes_by_hand import ITEMS, LINES, change, changes
from tests.spark.lake_by_hand import unwatched
from tests.spark.sessions import pipeline_in

CHANGES = [change((0, 1, n, 0, 0), "c", {"id": n, "name": "a", "price": "1.00"}) for n in range(1, 13)]
LINE = change((0, 1, 99, 0, 0), "c", {"region": "a", "n": 1, "qty": 1}, LINES)


@pytest.fixture(scope="module")
def made(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake of twelve items in as many files, four of nine marked as gone in another, and of one line."""
    lake = Lake(spark, pipeline_in(tmp_path_factory.mktemp("made")))
    path, lines = lake.table("shop", "items"), lake.table("shop", "lines")
    columns = prepare(spark, path, ITEMS, ITEMS)
    rows = as_rows(changes(spark, *CHANGES), ITEMS, columns).drop(OP)
    more = rows.where("id < 10").selectExpr("id + 100 AS id", "* EXCEPT (id)")
    more.coalesce(1).write.format("delta").mode("append").save(path)
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id > 105")
    rows.repartitionByRange(12, "id").write.format("delta").mode("append").save(path)
    spark.sql(f"ALTER TABLE delta.`{path}` UNSET TBLPROPERTIES ('{LOG}')")  # as an older version left it
    line = as_rows(changes(spark, LINE), LINES, prepare(spark, lines, LINES, LINES)).drop(OP)
    line.coalesce(1).write.format("delta").mode("append").save(lines)
    landed = changes(spark, *CHANGES, LINE).selectExpr("*", "to_date(ts) AS day")
    landed.repartitionByRange(13, "key").write.format("delta").partitionBy("tbl", "day").save(lake.changes)
    note_status(lake)
    return Path(lake.root)


@pytest.fixture
def lake(lake: Lake, made: Path, monkeypatch: pytest.MonkeyPatch) -> Lake:
    monkeypatch.setattr("spark.maintenance.maintenance.BETWEEN", 0)
    shutil.copytree(made, lake.root)
    return lake


def note_status(lake: Lake) -> LakeStatus:
    tables = {
        f"shop.{name}": TableStatus(
            db="shop", table=name, rows=1, changes=1, version=lake.version(lake.table("shop", name))
        )
        for name in ("items", "lines")
    }
    status = LakeStatus(
        pipeline="shop", run=1, written_at=0, seconds=1, checkpoint=None,
        changes_version=lake.version(lake.changes), tables=tables,
    )  # fmt: skip
    lake.write(lake.status, status.model_dump(mode="json"))
    return status


def rows(lake: Lake) -> list[list[tuple[Any, ...]]]:
    """Of every table, as Spark reads them."""
    paths = (lake.table("shop", "items"), lake.table("shop", "lines"), lake.changes)
    return [sorted(map(tuple, lake.spark.read.format("delta").load(path).collect()), key=str) for path in paths]


def test_small_files_become_few_and_every_reader_has_the_same_rows(spark: SparkSession, lake: Lake) -> None:
    path, before = lake.table("shop", "items"), rows(lake)
    polars = pl.read_delta(path).sort("id").rows()
    status = note_status(lake)
    report = Maintaining(spark, lake).run()

    assert rows(lake) == before
    assert pl.read_delta(path).sort("id").rows() == polars
    told = {name: (facts["files"], facts["files_after"]) for name, facts in report["tables"].items()}
    assert told == {"shop.items": (13, 1), "shop.lines": (1, 1), "_changes": (13, 2)}
    assert {name: facts["freed_bytes"] for name, facts in report["tables"].items()} == dict.fromkeys(told, 0)
    assert files_of(spark, path).marked == 0
    assert {kept_for(spark, one).days for one in (path, lake.table("shop", "lines"), lake.changes)} == {8}
    assert report["held_back"] == []
    assert lake.read(lake.at(RECORD))["tables"] == report["tables"]

    assert foreign_writes(lake, since_last(lake, status)).told == {}, "each commit says that it is ours"
    assert not look(lake, status).undone
    for one in (path, lake.changes):
        assert {row["userMetadata"] for row in DeltaTable.forPath(spark, one).history().collect()} == {OURS}
    versions = [lake.version(one) for one in (path, lake.changes)]
    assert Maintaining(spark, lake).run()["freed_bytes"] == 0
    assert [lake.version(one) for one in (path, lake.changes)] == versions, "there was nothing to do"


def test_a_check_has_the_rows_that_the_status_means_though_their_files_are_gone(
    spark: SparkSession, lake: Lake
) -> None:
    """No compaction came since; behind the next row the version of before is another state, and is not read."""
    path = lake.table("shop", "items")
    before, status = rows(lake), note_status(lake)
    version = status.tables["shop.items"].version
    assert version is not None
    Maintaining(spark, lake).run(["shop.items"])
    assert vacuum(spark, lake, path, 0) > 0
    newest = same_rows(lake, path, version)
    assert newest == lake.version(path)
    assert sorted(map(tuple, lake.frame(path, newest).collect()), key=str) == before[0]
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 1")
    assert same_rows(lake, path, version) == newest


def test_files_of_a_table_that_the_file_has_no_more_are_looked_after_too(spark: SparkSession, lake: Lake) -> None:
    """Rows that were erased are in those of before."""
    status = note_status(lake)
    status.tables.pop("shop.items")
    lake.write(lake.status, status.model_dump(mode="json"))
    assert Maintaining(spark, lake).run(["shop.items"])["tables"]["shop.items"]["files_after"] == 1
    assert set(Maintaining(spark, lake).run()["tables"]) == {"shop.items", "shop.lines", "_changes"}


def test_what_is_no_tables_folder_is_passed_by(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HDFS lets nobody ask for what is below a file, nor any store for what is in a folder of somebody else's."""
    note_status(lake)
    (Path(lake.root) / "lost found").mkdir()
    listed, asked = lake.list, list[str]()

    def of(folder: str) -> list[str]:
        asked.append(folder.removeprefix(lake.root))
        return listed(folder)

    monkeypatch.setattr(Lake, "list", lambda _, folder: of(folder))
    assert set(Maintaining(spark, lake).run()["tables"]) == {"shop.items", "shop.lines", "_changes"}
    assert {"", "/shop"} <= {*asked}
    assert not [folder for folder in asked if folder.startswith(("/_status", "/lost"))]


def test_what_a_reader_of_the_retention_needs_stays(spark: SparkSession, lake: Lake) -> None:
    path = lake.table("shop", "items")
    before, version = rows(lake), lake.version(path)
    Maintaining(spark, lake).run(["shop.items"])
    old = spark.read.format("delta").option("versionAsOf", str(version))
    assert sorted(map(tuple, old.load(path).collect()), key=str) == before[0]
    live = pl.read_delta(path).height
    assert vacuum(spark, lake, path, 0) > 10_000
    assert len(list(Path(path).glob("*.parquet"))) == 1
    assert (pl.read_delta(path).height, rows(lake)) == (live, before)
    assert vacuum(spark, lake, path, 0) == 0


@pytest.mark.parametrize(("hours", "goes"), [(24, True), pytest.param(48, False, marks=pytest.mark.soak)])
def test_files_of_before_go_by_vacuum_hours_also_where_those_are_less_than_a_week(
    spark: SparkSession, lake: Lake, hours: int, goes: bool
) -> None:
    path, before = lake.table("shop", "items"), rows(lake)
    Maintaining(spark, lake).run(["shop.items"])
    back(path, hours=36)
    lake.forget_logs()
    rules = lake.pipeline.maintenance.model_copy(update={"vacuum_hours": hours})
    lake.pipeline = lake.pipeline.model_copy(update={"maintenance": rules})
    assert (Maintaining(spark, lake).run(["shop.items"])["freed_bytes"] > 0) == goes
    assert rows(lake) == before


def back(path: str, hours: int) -> None:
    """All that was done to the table was done so long before."""
    for file in (file for file in Path(path).rglob("*") if file.is_file()):
        made = file.stat().st_mtime - hours * 3600
        if file.suffix == ".json":
            earlier = lambda found: f"{found[1]}{int(found[2]) - hours * 3_600_000}"  # noqa: E731
            file.write_text(re.sub(r'("deletionTimestamp":)(\d+)', earlier, file.read_text()))
            file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
        os.utime(file, (made, made))


POINTS = [point for point in MAINTENANCE if not point.startswith("history ")]


@pytest.mark.parametrize("point", [POINTS[0], *(pytest.param(one, marks=pytest.mark.soak) for one in POINTS[1:])])
def test_one_that_was_killed_is_made_good_by_the_next(spark: SparkSession, lake: Lake, point: str) -> None:
    def kill(reached: str) -> None:
        if reached == point:
            raise KeyboardInterrupt

    before = rows(lake)
    with hooked(kill), pytest.raises(KeyboardInterrupt):
        Maintaining(spark, lake).run(["shop.items"])
    assert rows(lake) == before
    Maintaining(spark, lake).run(["shop.items"])
    assert rows(lake) == before
    assert files_of(spark, lake.table("shop", "items")).count == 1


def test_nothing_is_removed_that_a_killed_compaction_may_need(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    emptied: list[str] = []
    monkeypatch.setattr(
        "spark.maintenance.maintenance.vacuum", lambda spark, lake, path, hours: emptied.append(path) or 0
    )
    lake.write(lake.at(UNFINISHED), {"began": 0})
    [told] = Maintaining(spark, lake, ["vacuum"]).run()["held_back"]
    assert told.startswith("_changes: a compaction has not come to its end, so nothing is removed")
    assert emptied == [lake.table("shop", "items"), lake.table("shop", "lines")]
    lake.delete(lake.at(UNFINISHED))
    assert Maintaining(spark, lake, ["vacuum"]).run()["held_back"] == []
    assert emptied[2:] == [*emptied[:2], lake.changes]


def test_what_somebody_else_wrote_is_told_before_anything_is_removed(spark: SparkSession, lake: Lake) -> None:
    spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", "a person")
    try:
        spark.sql(f"DELETE FROM delta.`{lake.changes}` WHERE op = 'c'")
    finally:
        spark.conf.set("spark.databricks.delta.commitInfo.userMetadata", OURS)
    with pytest.raises(LakeError, match=r"somebody else than Headrace's jobs changed .*RESTORE TABLE"):
        Maintaining(spark, lake).run()


def test_a_broken_table_is_told_and_the_others_are_done(spark: SparkSession, lake: Lake) -> None:
    for file in Path(lake.table("shop", "items")).glob("*.parquet"):
        file.write_bytes(b"nothing")
    with pytest.raises(JobFailedError, match=r"shop\.items: a file of the lake.* cannot be read") as caught:
        Maintaining(spark, lake, warnings=["the lake is 90 h behind"]).run()
    assert caught.value.facts["failed"] == {"shop.items": str(caught.value)}
    assert caught.value.facts["tables"]["_changes"]["files_after"] == 2
    assert caught.value.facts["warnings"] == ["the lake is 90 h behind"], "then above all"


def test_so_is_one_with_a_feature_that_this_delta_does_not_know(spark: SparkSession, lake: Lake) -> None:
    path = lake.table("shop", "items")
    features = {
        "minReaderVersion": 3,
        "minWriterVersion": 7,
        "readerFeatures": ["of2030"],
        "writerFeatures": ["of2030"],
    }
    log = Path(path, "_delta_log", f"{(lake.version(path) or 0) + 1:020}.json")
    log.write_text(json.dumps({"protocol": features}) + "\n")
    lake.forget_logs()
    with pytest.raises(JobFailedError, match=r"shop\.items: .*does not know \(of2030\)") as caught:
        Maintaining(spark, lake).run()
    assert caught.value.facts["tables"]["shop.items"] == {"freed_bytes": 0}
    assert caught.value.facts["tables"]["_changes"]["files_after"] == 2


@pytest.mark.soak
def test_a_compaction_has_its_turn_between_two_tables(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("spark.maintenance.maintenance.BETWEEN", 1.5)
    seen: list[str] = []

    def compact() -> None:
        with writing(lake, "compact", patience=120):
            new = change((0, 1, 200, 0, 0), "u", {"id": 1, "name": "new", "price": "1.00"})
            Merging(spark, lake, Schemas([ITEMS]), unwatched(lake))._batch(changes(spark, new), 0, "q")
            seen.append("merged")

    beside = threading.Thread(target=compact)

    def note(point: str) -> None:
        if threading.current_thread() is not threading.main_thread():
            return
        if not seen:
            beside.start()
            time.sleep(1)
        seen.append(point)

    with hooked(note):
        Maintaining(spark, lake).run()
    beside.join()
    assert seen.index("merged") > seen.index("small files joined"), "not while a table is written"
    assert seen.index("merged") < len(seen) - 1 - seen[::-1].index("small files joined"), "and before the next one"
    [row] = spark.read.format("delta").load(lake.table("shop", "items")).where("id = 1").select("name").collect()
    assert row["name"] == "new"


def test_a_wrong_name_and_a_wrong_step_are_told(spark: SparkSession, lake: Lake) -> None:
    with pytest.raises(
        LakeError, match=r"the lake has no table shop\.itemz \(did you mean shop\.items\?\): check the name"
    ):
        Maintaining(spark, lake).run(["shop.itemz"])
    with pytest.raises(LakeError, match=r"polish is no step of a maintenance: there are history, optimize, vacuum"):
        maintain(spark, lake.pipeline, [], "optimize, polish")


def test_of_a_lake_that_is_not_there_yet_nothing_is_made(spark: SparkSession, lake: Lake) -> None:
    other = lake.pipeline.model_copy(update={"name": "later"})
    assert maintain(spark, other, [])["held_back"] == ["the lake is not there yet: nothing was done"]
    assert not Path(lake.root).with_name("later").exists()
