"""A snapshot that did not end goes on with its missing chunks; where it may not, it begins again and says why."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract import gtids
from spark.lake import unfinished
from spark.lake.lake import Lake
from spark.lake.manifests import rows_folder
from spark.lake.unfinished import BEAT, Unfinished
from stack.database import Database
from stack.mysql import MySQL
from tests.integration.decoding import executed, run
from tests.integration.staging import Snapshots, pipeline, streamed

ROWS = 175  # of a chunk of 10 and groups of 8: three parts


class KilledError(Exception):
    pass


def fill(server: Database, db: str) -> None:
    rows = ", ".join(f"({n}, 'row {n}')" for n in range(ROWS))
    tables = [f"CREATE TABLE {db}.{t} (id int PRIMARY KEY, v varchar(20))" for t in ("early", "late")]
    fills = [f"INSERT INTO {db}.{t} VALUES {rows}" for t in ("early", "late")]
    run(server, f"DROP DATABASE IF EXISTS {db}", f"CREATE DATABASE {db}", *tables, *fills)


def killed(snapshots: Snapshots, lake: Lake) -> Unfinished:
    """In the middle of the second table, by what leaves no word behind; rows are staged that are not noted."""

    def kill(schema: Any, parts: int) -> None:
        if schema.table == "late" and parts == 2:
            raise KilledError

    with pytest.raises(KilledError):
        snapshots.run(between=kill)
    [left] = unfinished.unfinished(lake)
    lake.write(f"{left.folder}/{BEAT}", {"at": time.time(), "by": "killed"})
    progress = left.progress("resumed", "late")
    assert progress is not None
    half = rows_folder(left.folder, progress.shape.db, progress.shape.table)
    lake.spark.read.format("delta").load(half).limit(5).write.format("delta").mode("append").save(half)
    return left


def texts(*changed: int) -> list[str]:
    return sorted(f'{{"id":{n},"v":"{"new" if n in changed else f"row {n}"}"}}' for n in range(ROWS))


def test_a_killed_snapshot_goes_on_or_says_why_not(
    spark: SparkSession, mysql: MySQL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unfinished, "SILENT", 1.5)
    fill(mysql, "resumed")
    rules = pipeline(mysql, tmp_path, "resumed.*", parallelism=1)
    snapshots, lake = Snapshots(spark, mysql, rules), Lake(spark, rules)
    left = killed(snapshots, lake)
    p0 = {name: left.progress("resumed", name).p0 for name in ("early", "late")}  # type: ignore[union-attr]
    # Read already, and not: both come by the stream as well, which takes the place of what was read.
    run(mysql, "UPDATE resumed.late SET v = 'new' WHERE id IN (3, 170)")

    read: list[tuple[str, int]] = []
    manifest = snapshots.run(between=lambda schema, parts: read.append((schema.table, parts)))
    assert manifest.id == left.id
    assert read == [("late", 2)]
    assert "resumed.early: was read whole" in snapshots.told
    assert "resumed.late: goes on behind its first 160 rows" in snapshots.told
    assert {schema.table: manifest.begun(schema) for schema in manifest.tables} == p0
    assert snapshots.rows(manifest, "early") == texts()
    assert snapshots.rows(manifest, "late") == texts(170)  # the change of 3 is behind P0
    assert gtids.parse(manifest.p1) == executed(mysql)
    lake.delete(left.folder)

    left = killed(snapshots, lake)
    run(mysql, "ALTER TABLE resumed.late ADD COLUMN more int DEFAULT 5")
    noted: list[bool] = []
    manifest = snapshots.run(between=lambda one, _: noted.append(left.progress(one.db, one.table) is not None))
    assert all(noted), "an erasure sees each table that is being read, from its first chunks on"
    assert noted
    assert manifest.id == left.id
    assert "resumed.late: is read again from its beginning: the table was altered since" in snapshots.told
    assert json.loads(snapshots.rows(manifest, "late")[0])["more"] == 5
    early, late = manifest.tables
    assert manifest.begun(early).gtid_set != manifest.begun(late).gtid_set == streamed(mysql).gtid_set
    lake.delete(left.folder)

    left = killed(snapshots, lake)
    lake.write(f"{lake.checkpoint('changes')}/metadata", {"id": "one"})
    plan = left.plan
    assert plan is not None
    left.begin(plan.model_copy(update={"landing": "another"}))
    manifest = snapshots.run()
    assert manifest.id != left.id
    assert any("is begun again: compaction's place in Kafka was moved away" in line for line in snapshots.told)
    assert lake.list(lake.at("_staging")) == [manifest.id]


def test_a_snapshot_that_still_runs_is_left_alone(
    spark: SparkSession, mysql: MySQL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unfinished, "BEATS", 0.3)
    fill(mysql, "running")
    rules = pipeline(mysql, tmp_path, "running.*", parallelism=1)
    first, second, ids = Snapshots(spark, mysql, rules), Snapshots(spark, mysql, rules), []

    def meanwhile(schema: Any, parts: int) -> None:
        if schema.table == "late" and parts == 1:
            ids.append(second.run().id)

    ids.append(first.run(between=meanwhile).id)
    assert len(set(ids)) == 2
    for one in ids:
        assert first.lake.exists(first.lake.at("_staging", one, "manifest.json"))


def test_rests_in_which_the_server_would_hang_up_end_no_snapshot(
    spark: SparkSession, mysql: MySQL, tmp_path: Path
) -> None:
    fill(mysql, "resting")
    snapshots = Snapshots(spark, mysql, pipeline(mysql, tmp_path, "resting.*", parallelism=1))
    run(mysql, "SET GLOBAL wait_timeout = 1")
    try:
        manifest = snapshots.run(between=lambda *_: time.sleep(1.5))
    finally:
        run(mysql, "SET GLOBAL wait_timeout = DEFAULT")
    assert snapshots.rows(manifest, "late") == texts()
    assert manifest.counts == {"resting.early": ROWS, "resting.late": ROWS}


def test_a_connection_that_is_cut_in_such_a_rest_is_made_anew(
    spark: SparkSession, mysql: MySQL, tmp_path: Path
) -> None:
    """As by a proxy. The next boundaries are asked for while a group is read, so that the cut is at its end."""
    fill(mysql, "cut")
    snapshots = Snapshots(spark, mysql, pipeline(mysql, tmp_path, "cut.*", parallelism=1))
    cut: list[int] = []

    def between(schema: Any, parts: int) -> None:
        time.sleep(0.5)  # what is walked ahead is walked by then
        with mysql.connect() as connection, connection.cursor() as cursor:
            cursor.execute(
                "SELECT id FROM information_schema.processlist WHERE user = 'headrace' AND command = 'Sleep'"
            )
            for [id] in cursor.fetchall():
                cursor.execute(f"KILL {id}")
                cut.append(id)

    manifest = snapshots.run(between=between)
    assert cut
    assert snapshots.rows(manifest, "early") == snapshots.rows(manifest, "late") == texts()
