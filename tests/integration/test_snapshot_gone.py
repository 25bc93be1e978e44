"""Tables that go while a snapshot of all runs, or behind one that was killed, keep no other from being staged."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark.errors import LakeError, TableGoneError
from spark.lake import unfinished
from spark.lake.lake import Lake
from spark.snapshot.snapshot import GONE
from stack.database import Database
from stack.mysql import MySQL
from tests.integration.decoding import run
from tests.integration.staging import Snapshots, pipeline
from tests.integration.test_snapshot_resume import fill, killed, texts


@pytest.mark.parametrize("server", ["mysql", "mariadb"], indirect=True)
@pytest.mark.parametrize(("dropped", "before"), [("late", ("early", 0)), ("early", ("early", 1))])
def test_a_table_that_is_dropped_is_left_out(
    spark: SparkSession, server: Database, tmp_path: Path, dropped: str, before: tuple[str, int]
) -> None:
    """Before its turn, and between two of its parts."""
    fill(server, "dropping")
    snapshots = Snapshots(spark, server, pipeline(server, tmp_path, "dropping.*", parallelism=1))

    def between(schema: Any, parts: int) -> None:
        if (schema.table, parts) == before:
            run(server, f"DROP TABLE dropping.{dropped}")

    [left] = {"early", "late"} - {dropped}
    manifest = snapshots.run(between=between)
    assert manifest.counts == {f"dropping.{left}": len(texts())}
    assert snapshots.rows(manifest, left) == texts()
    assert f"dropping.{dropped} is left out: {GONE}" in snapshots.told
    assert snapshots.gone == {f"dropping.{dropped}"}, "which nobody is to be alarmed by"
    staged = manifest.folder(snapshots.lake)
    assert snapshots.lake.list(f"{staged}/dropping") == [left]
    assert f"progress.dropping.{dropped}.json" not in snapshots.lake.list(staged), "one to go on with would miss it"
    with pytest.raises(LakeError, match=rf"dropping\.{left}: {GONE}"):
        snapshots.run(between=lambda schema, _: run(server, f"DROP TABLE IF EXISTS dropping.{left}"))


@pytest.mark.parametrize("server", ["mysql", "mariadb"], indirect=True)
def test_a_table_that_the_server_cannot_read_keeps_no_other_from_being_staged(
    spark: SparkSession, server: Database, tmp_path: Path
) -> None:
    """Its files are gone for the server, though its columns are known."""
    fill(server, "harmed")
    snapshots = Snapshots(spark, server, pipeline(server, tmp_path, "harmed.*"))
    run(server, "ALTER TABLE harmed.early DISCARD TABLESPACE")
    manifest = snapshots.run()
    assert manifest.counts == {"harmed.late": len(texts())}
    [told] = [line for line in snapshots.told if line.startswith("harmed.early is left out: ")]
    assert re.search(r"the server cannot read this table \(error 1814: .*then run the snapshot again", told)
    with pytest.raises(LakeError, match=r"^harmed\.early: the server cannot read this table"):
        snapshots.run(tables=[("harmed", "early")])


def test_a_table_that_a_person_named_is_told_at_once(spark: SparkSession, mysql: MySQL, tmp_path: Path) -> None:
    fill(mysql, "named")
    snapshots = Snapshots(spark, mysql, pipeline(mysql, tmp_path, "named.*"))
    asked = [("named", "early"), ("named", "gone")]
    with pytest.raises(TableGoneError, match=r"named\.gone is no table of the source: check its name"):
        snapshots.run(tables=asked, named=True)
    assert snapshots.run(tables=asked).counts == {"named.early": len(texts())}

    def drop(schema: Any, parts: int) -> None:
        run(mysql, "DROP TABLE IF EXISTS named.late")

    manifest = snapshots.run(tables=[("named", "early"), ("named", "late")], named=True, between=drop)
    assert manifest.counts == {"named.early": len(texts())}
    assert snapshots.gone == set(), "behind the others it is an error"


def test_a_killed_snapshot_goes_on_without_what_is_gone_and_with_what_is_new(
    spark: SparkSession, mysql: MySQL, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unfinished, "SILENT", 1.5)
    fill(mysql, "resumed")
    rules = pipeline(mysql, tmp_path, "resumed.*", parallelism=1)
    snapshots, lake = Snapshots(spark, mysql, rules), Lake(spark, rules)
    left = killed(snapshots, lake)
    begun = left.progress("resumed", "late")
    assert begun is not None
    run(mysql, "DROP TABLE resumed.early", "CREATE TABLE resumed.fresh LIKE resumed.late")
    run(mysql, "INSERT INTO resumed.fresh VALUES (1, 'a')")
    manifest = snapshots.run()
    assert manifest.id == left.id
    assert manifest.counts == {"resumed.late": len(texts()), "resumed.fresh": 1}
    assert "resumed.late: goes on behind its first 160 rows" in snapshots.told
    assert snapshots.rows(manifest, "late") == texts()
    fresh, late = sorted(manifest.tables, key=lambda schema: schema.table)
    assert manifest.begun(late) == begun.p0
    assert manifest.begun(fresh).gtid_set != begun.p0.gtid_set, "a table that was not there has a P0 of its own"
    assert sorted(lake.list(f"{manifest.folder(lake)}/resumed")) == ["fresh", "late"], "of others nothing is left there"
