"""What people, disks and clocks do to a lake: one clear message, nothing lost, and the way back walked to its end."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import SparkSession

from contract.checkpoint import Checkpoint
from contract.pipeline import Pipeline
from contract.status import LakeStatus, TableStatus
from spark.errors import LakeError
from spark.lake.applied import Applied, AppliedSnapshots
from spark.lake.lake import Lake
from spark.lake.manifests import Manifest
from spark.lake.owner import refuse_foreign
from spark.landing.foreign import foreign_writes, forget_lost, since_last
from spark.merging.handoff import apply_ready
from spark.merging.tables import Merging
from spark.snapshot.resume import Resume
from spark.source.choice import chosen
from spark.tables.schema import Schemas
from tests import checkpoints
from tests.spark.changes_by_hand import ITEMS, LINES, change, changes
from tests.spark.lake_by_hand import staged, unwatched

NAME = ("shop", "items")
FUTURE = "20991231T000000000Z"  # the id of a snapshot that was made while the clock was ahead


def checkpoint(pos: int, **facts: Any) -> Checkpoint:
    known: dict[str, Any] = {"pipeline": "shop", "server_uuid": "u", "ts_ms": 1_700_000_000_000, "events": 10}
    return checkpoints.checkpoint(**{**known, "pos": pos, "gtid_set": f"u:1-{pos}", **facts})


def standing(version: int | None = None, changes_version: int | None = None) -> LakeStatus:
    table = TableStatus(db="shop", table="items", rows=2, changes=2, version=version)
    return LakeStatus(
        pipeline="shop", run=1, written_at=1, seconds=1, checkpoint=checkpoint(1000), changes_version=changes_version,
        tables={"shop.items": table},
    )  # fmt: skip


def item(n: int, name: str = "a") -> dict[str, Any]:
    return {"id": n, "name": name, "price": None}


def land(spark: SparkSession, lake: Lake, pos: int, *ops: tuple[str, int, str]) -> None:
    """Changes of items, and one of another table."""
    made = [change((0, 1, pos + n, 0, 0), op, item(id, name)) for n, (op, id, name) in enumerate(ops)]
    made.append(change((0, 1, pos + 50, 0, 0), "c", {"region": "r", "n": pos, "qty": 1}, LINES))
    changes(spark, *made).write.format("delta").partitionBy("tbl").mode("append").save(lake.changes)


def stage(spark: SparkSession, lake: Lake, id: str, pos: int, *rows: dict[str, Any]) -> None:
    p0, counts = checkpoint(pos), {"shop.items": len(rows)}
    manifest = Manifest(id=id, pipeline="shop", p0=p0, p1=p0.gtid_set, tables=[ITEMS], counts=counts)
    staged(spark, lake, manifest, *rows)


def merged(spark: SparkSession, lake: Lake) -> Merging:
    """As far as a compaction run does it: the hand-off, the merge, the stopped tables."""
    floors = apply_ready(spark, lake).snapshots.floors()
    merging = Merging(spark, lake, Schemas([ITEMS, LINES]), unwatched(lake), floors)
    merging.run()
    merging.retry()
    return merging


def rows(lake: Lake) -> list[tuple[Any, ...]]:
    return sorted(pl.read_delta(lake.table(*NAME)).select("id", "name").rows())


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("items", "'items' is no table's name: write it as db.table"),
        ("shop.itms", "the source has no table shop.itms (did you mean shop.items?): check the name"),
        ("crm.items", "crm.items is not one of the pipeline's tables (shop.*, _staging.*): see tables in"),
    ],
)
def test_an_unknown_table(pipeline: Pipeline, name: str, told: str) -> None:
    source: Any = SimpleNamespace(versioned=list, tables=lambda: [("shop", "items")])
    with pytest.raises(LakeError, match=re.escape(told)):
        chosen(pipeline, source, [name])


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (None, "the commit log is empty"),
        (checkpoint(7), r"the lake has what was before binlog.000001:1000 of epoch 0 .*ends at binlog.000001:7"),
        (checkpoint(5000, server_uuid="other"), "is of the server other, without a new epoch"),
        (checkpoint(5000, events=3), "10 changes, and the commit log tells of 3"),
    ],
    ids=["empty", "behind", "another server's", "begun anew"],
)
def test_the_lake_of_another_commit_log_is_left_alone(pipeline: Pipeline, now: Checkpoint | None, told: str) -> None:
    lake: Any = SimpleNamespace(root="/lake/shop", pipeline=pipeline)
    with pytest.raises(LakeError, match=rf"{told}.*move the folder /lake/shop away.*DAG shop\.snapshot"):
        refuse_foreign(lake, standing(), now)
    refuse_foreign(lake, None, now)  # the way back: a folder that is new
    refuse_foreign(lake, standing(), checkpoint(1000))
    refuse_foreign(lake, standing(), checkpoint(4, epoch=1, server_uuid="other"))  # a failover, or a move back


def test_the_lake_folder_of_another_pipeline(spark: SparkSession, pipeline: Pipeline, lake: Lake) -> None:
    crm = pipeline.model_copy(update={"name": "crm"})
    with pytest.raises(LakeError, match=r"crm is the lake of the pipeline shop, not of crm: correct lake\.path or"):
        refuse_foreign(Lake(spark, crm), standing(), checkpoint(1000))
    lake.write(lake.status, standing().model_dump(mode="json"))
    inside = crm.model_copy(update={"lake": crm.lake.model_copy(update={"path": lake.root})})
    with pytest.raises(LakeError, match=r"lake\.path in .* is .*/shop, which is itself the lake of the pipeline shop"):
        Lake(spark, inside).prove_writable()
    assert not Path(lake.root, "crm").exists()


def test_a_table_that_somebody_else_wrote_in_between(spark: SparkSession, lake: Lake) -> None:
    path = lake.table(*NAME)
    spark.createDataFrame([(1,), (2,)], "id int").write.format("delta").save(path)
    last = standing(version=lake.version(path))
    DeltaTable(path).optimize.compact()  # changes no row
    spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 1")  # one of ours: a maintenance that was killed
    assert foreign_writes(lake, since_last(lake, last)).told == {}
    write_deltalake(path, pl.DataFrame({"id": [7]}, {"id": pl.Int32}), mode="append")
    [told] = foreign_writes(lake, since_last(lake, last)).told.values()
    said = rf"changed the lake's table shop\.items: WRITE as version {lake.version(path)}, .*run the snapshot DAG"
    assert re.search(said, told)
    Path(path).rename(f"{lake.root}-away")
    gone = foreign_writes(lake, since_last(lake, last)).told
    assert "it is gone" in gone[NAME]
    snapshots = AppliedSnapshots(lake)
    snapshots.note(NAME, Applied(id="1", p0="", p1="", rows=2, applied_at=1, floor=[0, 1, 4, -1, -1]))
    forget_lost(snapshots, gone)
    assert AppliedSnapshots(lake).gap(NAME)


def data_files(path: str, of: str = "") -> list[Path]:
    found = [file for file in Path(path).rglob("*.parquet") if "_delta_log" not in file.parts and of in str(file)]
    return sorted(found, key=lambda file: file.stat().st_mtime_ns)


def corrupt(file: Path) -> None:
    file.write_bytes(b"no Parquet file")


@pytest.mark.parametrize("harm", [Path.unlink, pytest.param(corrupt, marks=pytest.mark.soak)])
def test_a_broken_file_of_a_table_stops_it_alone_and_the_snapshot_makes_it_anew(
    spark: SparkSession, lake: Lake, harm: Callable[[Path], None]
) -> None:
    land(spark, lake, 100, ("c", 1, "a"), ("c", 2, "a"), ("u", 1, "b"), ("d", 2, ""), ("c", 3, "a"))
    merged(spark, lake)
    for file in data_files(lake.table(*NAME)):
        harm(file)
    land(spark, lake, 200, ("u", 3, "c"))
    run = merged(spark, lake)
    said = r"shop\.items: a file of the lake's table is missing or cannot be read \(.*parquet\).* run the snapshot DAG"
    assert re.search(said, run.stopped.tables[NAME].reason)
    assert run.merged == {("shop", "lines"): 1}
    # P0 is before changes that the broken table had, which it lost with its files.
    stage(spark, lake, "20260101", 101, item(1), item(2))
    run = merged(spark, lake)
    assert (run.stopped.tables, rows(lake)) == ({}, [(1, "b"), (3, "c")])


def test_a_clock_that_was_set_back_does_not_make_a_new_snapshot_an_old_one(lake: Lake) -> None:
    snapshots = AppliedSnapshots(lake)
    snapshots.note(NAME, Applied(id=FUTURE, p0="", p1="", rows=1, applied_at=1, floor=[0, 1, 4, -1, -1]))
    jobs = [Resume(lake, checkpoint(60), print).job([table]).id for table in ("shop.items", "shop.lines")]
    assert jobs == [f"{FUTURE}-000001", f"{FUTURE}-000002"]
    assert not snapshots.has(NAME, jobs[0])
