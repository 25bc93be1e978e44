"""A lake on a real S3 server: changes are merged there under the slot, batch by batch, and every reader reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pyspark.sql import SparkSession

from contract import names
from contract.pipeline import Pipeline, load
from contract.pipeline_maintenance import Maintenance
from contract.status import LakeStatus, TableStatus
from readers.lake import query
from readers.status import read
from readers.store import options
from spark.erasing import topics
from spark.failures import message_of
from spark.jobs import backfill, erase
from spark.lake.lake import Lake
from spark.lake.slot import writing
from spark.lake.swaps import Conditional, swap
from spark.maintenance.maintenance import Maintaining
from spark.maintenance.tidying import vacuum
from spark.merging.tables import Merging
from spark.tables.schema import Schemas
from stack.s3 import S3
from tests.s3_server import s3_server
from tests.spark import test_erasing
from tests.spark.changes_by_hand import ITEMS, change, changes, record
from tests.spark.lake_by_hand import AT, ids, item, part, seq, stage, unwatched
from tests.spark.sessions import PIPELINE
from tests.spark.test_erasing import GONE
from tests.spark.test_repair import damage


@pytest.fixture
def s3(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[S3]:
    with s3_server(tmp_path / "s3", "lakes") as server:
        monkeypatch.setenv("S3_SECRET", server.secret)
        yield server


@pytest.fixture
def pipeline(tmp_path: Path, s3: S3) -> Pipeline:
    file = tmp_path / "shop.yaml"
    file.write_text(PIPELINE.format(lake="").partition("lake: ")[0] + s3.lake_section("lakes/of"))
    return load(file)


def merged(spark: SparkSession, lake: Lake, *given: tuple[int, str, int, str]) -> None:
    """By a run of its own. Each: place, operation, id, name."""
    rows = [change((0, 1, at, 0, 0), op, {"id": id, "name": name, "price": "1.00"}) for at, op, id, name in given]
    changes(spark, *rows).write.format("delta").mode("append").save(lake.changes)
    step = Merging(spark, lake, Schemas([ITEMS]), unwatched(lake))
    step.run()
    assert step.merged == {("shop", "items"): len(rows)}


def look_after(spark: SparkSession, lake: Lake) -> None:
    """Makes the files few and removes the others; changes are merged as before."""
    lake.pipeline = lake.pipeline.model_copy(update={"maintenance": Maintenance(small_files=2)})
    told = Maintaining(spark, lake, ["optimize"]).run()["tables"]
    assert {name: facts["files_after"] for name, facts in told.items()} == {"shop.items": 1, "_changes": 1}
    assert all(vacuum(spark, lake, path, 0) > 0 for path in (lake.table("shop", "items"), lake.changes))
    merged(spark, lake, (9, "c", 9, "a"))
    note_status(lake)


def note_status(lake: Lake) -> LakeStatus:
    version = lake.version(lake.table("shop", "items"))
    tables = {"shop.items": TableStatus(db="shop", table="items", rows=2, changes=5, version=version)}
    status = LakeStatus(
        pipeline="shop", run=1, written_at=0, seconds=1, checkpoint=None, changes_version=0, tables=tables
    )
    lake.write(lake.status, status.model_dump(mode="json"))
    return status


def test_changes_are_merged_and_read(spark: SparkSession, lake: Lake, pipeline: Pipeline) -> None:
    lake.prove_writable()
    assert read(pipeline) is None
    with writing(lake, "compact"):
        assert lake.list(lake.root) == ["_writer.json"]
        merged(spark, lake, (1, "c", 1, "a"), (2, "c", 2, "a"), (3, "c", 3, "a"))
        merged(spark, lake, (4, "u", 1, "b"), (5, "d", 2, ""))
    assert "_writer.json" not in lake.list(lake.root)
    status = note_status(lake)
    assert read(pipeline) == status
    wanted = [(1, "b"), (3, "a")]
    assert sorted(query(pipeline, "SELECT id, name FROM items").rows()) == wanted
    table = names.lake_table(pipeline, "shop", "items")
    assert sorted(pl.read_delta(table, storage_options=options(pipeline)).select("id", "name").rows()) == wanted
    look_after(spark, lake)
    assert sorted(query(pipeline, "SELECT id FROM items").rows()) == [(1,), (3,), (9,)]
    staged = lake.at("_staging", "1")
    spark.createDataFrame([("k", "row")], "key string, after string").write.parquet(f"{staged}/shop/items/0")
    assert spark.read.parquet(f"{staged}/shop/items/*").count() == 1
    lake.delete(staged)
    assert lake.list(lake.at("_staging")) == []


@pytest.fixture
def jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their broker has nothing new."""
    monkeypatch.setattr(backfill, "Broker", test_erasing.Broker)
    monkeypatch.setattr(erase, "Broker", test_erasing.Broker)
    monkeypatch.setattr(topics, "Producer", test_erasing.Producer)


@pytest.mark.soak
@pytest.mark.usefixtures("jobs")
def test_rows_are_made_anew_repaired_and_erased(
    spark: SparkSession, pipeline: Pipeline, lake: Lake, s3: S3, compact: Callable[[], dict[str, Any]]
) -> None:
    """How a repair reads MySQL: tests/integration/test_lake_s3.py."""
    stage(spark, lake, "1", 50, *(item(n) for n in (1, 2, 3)))
    compact()
    changed = [record(0, seq(AT), "u", item(2, "b"), item(2)), record(1, seq(AT + 1), "u", item(3, GONE), item(3))]
    test_erasing.land(spark, lake, *changed)
    compact()
    damage(spark, lake, (1, "x"), (3, GONE))
    [made] = backfill.backfill(spark, pipeline, ["shop.items"])["parts"]
    assert compact()["parts"][made]["rows"] == {"changed": 1, "missing": 1}
    damage(spark, lake, (1, "a"), (2, "x"), (3, GONE))
    part(spark, lake, "p1", AT + 1, item(2, "b"), keys=[item(2), item(4)])
    assert compact()["parts"]["p1"]["rows"] == {"changed": 1}
    assert ids(spark, lake) == [(1, "a"), (2, "b"), (3, GONE)]
    assert lake.list(lake.at("_parts")) == []

    data = s3.home / "data" / "lakes"
    assert test_erasing.holding_in(data, GONE)
    facts = erase.erase(spark, pipeline, ["shop.items"], "[3]", present="yes", now="yes", run="r", by="ada")
    assert facts["tables"]["shop.items"]["table"] == 1
    assert test_erasing.holding_in(data, GONE) == []
    assert ids(spark, lake) == [(1, "a"), (2, "b")]
    [row] = spark.read.format("delta").load(lake.at("_erasures")).collect()
    assert row["by"] == "ada"


def test_the_store_lets_one_of_two_writers_through(lake: Lake) -> None:
    path = lake.at("_writer.json")
    one, other = swap(lake, path), swap(lake, path)
    assert isinstance(one, Conditional)
    tag = one.put({"by": "one"}, None)
    assert tag is not None
    one.prove(tag)
    assert other.put({"by": "other"}, None) is None
    later = one.put({"by": "one", "beat": 1}, tag)
    assert later is not None
    assert other.put({"by": "other"}, tag) is None, "of an older text"
    other.remove(tag)
    assert other.known() == ({"by": "one", "beat": 1}, later)
    one.remove(later)
    assert one.known() is None


def test_what_is_wrong_is_told_in_one_message_without_the_secret(
    spark: SparkSession, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("S3_SECRET", "wr0ng-secret")
    wrong = load(pipeline.path)
    with pytest.raises(Exception) as caught:  # whatever it is becomes one message
        Lake(spark, wrong).prove_writable()
    told = message_of(caught.value, wrong)
    assert "the store of the lake s3a://lakes/of refuses who asks" in told
    assert f"mend key and secret in lake.s3 of {pipeline.path}" in told
    assert "wr0ng" not in told
    with pytest.raises(OSError, match=r"_status\.json cannot be read: .*See to lake\.s3 in ") as unread:
        read(wrong)
    assert "wr0ng" not in str(unread.value)
