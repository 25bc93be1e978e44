"""Somebody else writes into `_changes`, before a run or in its middle: nothing of that becomes a row, and the way back
that the message spells ends with the rows that the source's changes make."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from deltalake import DeltaTable, write_deltalake
from pyspark.sql import DataFrame, SparkSession

from contract import status
from contract.pipeline import Pipeline
from readers.lake import query
from spark.errors import LakeError
from spark.failpoints import hooked
from spark.history.history import History
from spark.lake.commits import commits
from spark.lake.lake import Lake, commit_file
from spark.landing.changes import Landing
from spark.landing.foreign import look
from spark.merging import tables
from spark.session import OURS
from tests.spark.changes_by_hand import change, changes, record, records
from tests.spark.lake_by_hand import NAME, ids, item, seq, stage, unwatched
from tests.spark.test_bad_input import standing

Compact = Callable[[], dict[str, Any]]
Harm = Callable[[Lake], None]


def land(spark: SparkSession, lake: Lake, pos: int, *ops: tuple[str, int, str]) -> None:
    made = [change(seq(pos + n), op, item(id, name)) for n, (op, id, name) in enumerate(ops)]
    changes(spark, *made).write.format("delta").partitionBy("tbl").mode("append").save(lake.changes)


def append(lake: Lake) -> None:
    """A copy of each change, which looks newer, and says another thing."""
    rows = pl.read_delta(lake.changes)
    newer = pl.col("_seq").struct.with_fields((pl.field("pos") + 10_000).cast(pl.Int64).alias("pos"))
    other = pl.col("after").str.replace('"a"', '"foreign"')
    by = DeltaTable(lake.changes).metadata().partition_columns
    write_deltalake(lake.changes, rows.with_columns(newer, other), mode="append", partition_by=by)


def remove(lake: Lake) -> None:
    DeltaTable(lake.changes).delete("tbl = 'shop.items'")


def alter(lake: Lake) -> None:
    rows = pl.read_delta(lake.changes).with_columns(pl.lit(1).alias("note"))
    write_deltalake(lake.changes, rows, mode="append", schema_mode="merge", partition_by=["tbl"])


def take_back(spark: SparkSession, told: Any) -> None:
    [back] = re.findall(r"RESTORE TABLE delta\.`.*` TO VERSION AS OF \d+", str(told.value))
    setting = "spark.databricks.delta.commitInfo.userMetadata"
    spark.conf.unset(setting)  # as somebody's own session has it
    try:
        spark.sql(back)
    finally:
        spark.conf.set(setting, OURS)


@pytest.fixture
def landed(spark: SparkSession, lake: Lake, compact: Compact) -> None:
    land(spark, lake, 100, ("c", 1, "a"), ("c", 2, "a"), ("d", 2, "a"), ("c", 3, "a"))
    compact()
    # Mended from the source, which has no change that says it: only a merge of what is new leaves it so.
    spark.sql(f"DELETE FROM delta.`{lake.table(*NAME)}` WHERE id = 3")
    compact()


def later(spark: SparkSession, lake: Lake) -> None:
    land(spark, lake, 200, ("u", 1, "b"), ("c", 4, "a"))


ROWS = [(1, "b"), (4, "a")]


@pytest.mark.usefixtures("landed")
@pytest.mark.parametrize("harm", [append, *(pytest.param(harm, marks=pytest.mark.soak) for harm in (remove, alter))])
def test_what_was_taken_back_leaves_the_rows_that_the_changes_make(
    spark: SparkSession, pipeline: Pipeline, lake: Lake, compact: Compact, harm: Harm
) -> None:
    harm(lake)
    with pytest.raises(
        LakeError, match=r"somebody else than Headrace's jobs changed .*Nothing of that was merged"
    ) as told:
        compact()
    assert ids(spark, lake) == [(1, "a")]
    assert str(told.value) in query(pipeline, "SELECT * FROM items").doubts
    without = "items has no past for now: somebody else than Headrace"
    with pytest.raises(LakeError, match=without):
        History(spark, lake, *NAME).as_of(datetime(2026, 1, 1, tzinfo=UTC))
    take_back(spark, told)
    later(spark, lake)
    assert compact()["tables"]["shop.items"]["foreign"] is None
    assert ids(spark, lake) == ROWS
    land(spark, lake, 300, ("u", 4, "c"))
    compact()
    assert ids(spark, lake) == [(1, "b"), (4, "c")]


@pytest.mark.usefixtures("landed")
@pytest.mark.parametrize("harm", [append, pytest.param(remove, marks=pytest.mark.soak)])
def test_a_run_that_is_killed_behind_it_leaves_it_to_the_next(
    spark: SparkSession, lake: Lake, compact: Compact, harm: Harm
) -> None:
    harm(lake)
    with pytest.raises(LakeError) as told:
        compact()
    take_back(spark, told)
    later(spark, lake)
    for step in ("merge begun anew", "merged"):

        def crash(at: str, step: str = step) -> None:
            if at == step:
                raise InterruptedError(step)

        with hooked(crash), pytest.raises(InterruptedError):
            compact()
    compact()
    assert ids(spark, lake) == ROWS


@pytest.mark.usefixtures("landed")
@pytest.mark.parametrize(
    ("moment", "harm"),
    [
        ("behind the landing", append),
        pytest.param("behind the landing", remove, marks=pytest.mark.soak),
        pytest.param("behind the look", append, marks=pytest.mark.soak),
        pytest.param("behind the look", remove, marks=pytest.mark.soak),
    ],
)
def test_what_somebody_writes_during_a_run_is_not_merged(
    spark: SparkSession, lake: Lake, compact: Compact, monkeypatch: pytest.MonkeyPatch, harm: Harm, moment: str
) -> None:
    later(spark, lake)
    run_batches, harmed = tables.run_batches, []

    def late(frame: DataFrame, checkpoint: str, handle: Any, settle: Any) -> None:
        def batch(rows: DataFrame, number: int, query: str) -> None:
            if moment == "behind the look" and not harmed:
                harmed.append(harm(lake))
            handle(rows, number, query)

        run_batches(frame, checkpoint, batch, settle)

    def hook(at: str) -> None:
        if at == "run noted" and moment == "behind the landing" and not harmed:
            harmed.append(harm(lake))

    monkeypatch.setattr(tables, "run_batches", late)
    with hooked(hook), pytest.raises(LakeError, match="somebody else than Headrace's jobs changed") as told:
        compact()
    assert ids(spark, lake) == [(1, "a")]
    take_back(spark, told)
    compact()
    assert ids(spark, lake) == ROWS


@pytest.mark.usefixtures("landed")
@pytest.mark.soak
def test_a_stopped_table_is_not_mended_from_it(spark: SparkSession, lake: Lake, compact: Compact) -> None:
    later(spark, lake)
    tables.Merging(spark, lake, tables.Schemas([]), unwatched(lake)).stopped.stop(NAME, list(seq(0)), "for a test")
    looks = []

    def hook(at: str) -> None:
        if at == "merged" and not looks:
            looks.append(append(lake))

    with hooked(hook), pytest.raises(LakeError, match="somebody else than Headrace's jobs changed") as told:
        compact()
    assert ids(spark, lake) == [(1, "a")]
    take_back(spark, told)
    compact()
    assert [row for row in ids(spark, lake) if row[1] == "foreign"] == []


@pytest.mark.usefixtures("landed")
def test_a_table_that_somebody_writes_during_a_run_is_marked_and_counted(
    spark: SparkSession, pipeline: Pipeline, lake: Lake, compact: Compact, capsys: pytest.CaptureFixture[str]
) -> None:
    later(spark, lake)

    def hook(at: str) -> None:
        if at == "merged":
            DeltaTable(lake.table(*NAME)).delete("id = 4")

    with hooked(hook):
        facts = compact()["tables"]
    assert "DELETE as version" in facts["shop.items"]["foreign"]
    assert "DELETE as version" in capsys.readouterr().out
    assert facts["shop.items"]["rows"] == 1
    assert "DELETE as version" in compact()["tables"]["shop.items"]["foreign"], "until a check, or a snapshot"
    assert status.read(pipeline).tables["shop.items"].rows == 1  # type: ignore[union-attr]


def test_one_in_the_first_run_of_a_lake(spark: SparkSession, lake: Lake, compact: Compact) -> None:
    land(spark, lake, 100, ("c", 1, "a"))

    def crash(at: str) -> None:
        if at == "run noted":
            append(lake)
            raise InterruptedError

    with hooked(crash), pytest.raises(InterruptedError):
        compact()
    with pytest.raises(LakeError, match="somebody else than Headrace's jobs changed") as told:
        compact()
    take_back(spark, told)
    compact()
    assert ids(spark, lake) == [(1, "a")]


@pytest.mark.usefixtures("landed")
@pytest.mark.parametrize("harm", [append, pytest.param(remove, marks=pytest.mark.soak)])
@pytest.mark.soak
def test_a_snapshot_is_not_applied_by_it(spark: SparkSession, lake: Lake, compact: Compact, harm: Harm) -> None:
    """Keys that have a change behind P0 are left out of it: those of somebody's changes are not."""
    stage(spark, lake, "1", 150, item(1), item(4))
    later(spark, lake)

    def late(at: str) -> None:
        if at == "run noted":
            harm(lake)

    with hooked(late), pytest.raises(LakeError, match="somebody else than Headrace's jobs changed") as told:
        compact()
    take_back(spark, told)
    compact()
    assert ids(spark, lake) == ROWS


def test_it_can_be_taken_back_where_it_came_before_the_landing(
    spark: SparkSession, pipeline: Pipeline, lake: Lake
) -> None:
    """Behind a commit of ours it could not."""
    Landing(spark, pipeline, lake)._batch(records(spark, record(1, seq(100), "c", item(1))), 0, "q")
    last = standing(changes_version=lake.version(lake.changes))
    landing = Landing(spark, pipeline, lake, partial(look, lake, last))
    DeltaTable(lake.changes).delete()
    more = record(2, seq(300), "c", item(9))
    with pytest.raises(LakeError, match="RESTORE TABLE") as told:
        landing._batch(records(spark, more), 1, "q")
    take_back(spark, told)
    landing._batch(records(spark, more), 1, "q")
    assert look(lake, last).undone


def test_between_what_a_run_lands_and_the_marks_of_it_it_makes_no_mark(
    spark: SparkSession, pipeline: Pipeline, lake: Lake
) -> None:
    """By the marks it is known what comes again: the streamer's replay lands nothing twice."""
    Landing(spark, pipeline, lake)._batch(records(spark, record(1, seq(100), "c", item(1))), 0, "q")
    landing = Landing(spark, pipeline, lake, partial(look, lake, standing(changes_version=lake.version(lake.changes))))

    def harm(at: str) -> None:
        if at == "changes written":
            remove(lake)

    with hooked(harm), pytest.raises(LakeError, match="RESTORE TABLE") as told:
        landing._batch(records(spark, record(2, seq(300), "c", item(9))), 1, "q")
    take_back(spark, told)
    landing._batch(records(spark, record(2, seq(300), "c", item(9))), 1, "q")
    landing._batch(records(spark, record(3, seq(300), "c", item(9)), record(4, seq(400), "c", item(10))), 2, "q")
    found = spark.read.format("delta").load(lake.changes).select("_seq.pos").collect()
    assert sorted(row["pos"] for row in found) == [100, 300, 400]


@pytest.mark.usefixtures("landed")
@pytest.mark.soak
def test_a_status_that_is_gone_brings_nothing_back(spark: SparkSession, lake: Lake, compact: Compact) -> None:
    """By the merge's own checkpoint it is known what was merged; by `_changes`, which tables there are and how many of
    them, also where the run that writes the status anew has nothing new."""
    append(lake)
    with pytest.raises(LakeError) as told:
        compact()
    take_back(spark, told)
    lake.delete(lake.status)
    later(spark, lake)
    compact()
    assert ids(spark, lake) == ROWS
    lake.delete(lake.status)
    compact()
    [table] = status.read(lake.pipeline).tables.values()  # type: ignore[union-attr]
    assert (table.table, table.rows, table.changes, table.changes_last_run) == ("items", 2, 6, 0)


@pytest.mark.parametrize(
    "told", ['{"timestamp":"noon","operation":"WRITE"}', '{"operation":"RESTORE","operationParameters":"v1"}', "7"]
)
def test_a_commit_that_says_it_in_another_form_is_told(
    spark: SparkSession, lake: Lake, compact: Compact, told: str
) -> None:
    land(spark, lake, 100, ("c", 1, "a"))
    path, version = lake.changes, lake.version(lake.changes)
    assert version is not None
    Path(commit_file(path, version + 1)).write_text(f'{{"commitInfo":{told}}}\n')
    [commit] = commits(lake, path, version)
    assert (commit.version, commit.ours, commit.at, commit.restored) == (version + 1, False, None, None)
    with pytest.raises(LakeError, match=f"as version {version + 1}"):
        look(lake, standing(changes_version=version))


def test_the_version_of_a_table_and_its_commits_with_checkpoints_and_without(spark: SparkSession, lake: Lake) -> None:
    for n in range(23):
        write_deltalake(lake.at("t"), pl.DataFrame({"n": [n]}), mode="append")
        assert lake.version(lake.at("t")) == n
    DeltaTable(lake.at("t")).create_checkpoint()
    write_deltalake(lake.at("t"), pl.DataFrame({"n": [23]}), mode="append")
    assert lake.version(lake.at("t")) == 23
    assert [one.version for one in commits(lake, lake.at("t"), 20)] == [21, 22, 23]
    assert [one.version for one in commits(lake, lake.at("t"), -1, 2)] == [0, 1, 2]
    Path(commit_file(lake.at("t"), 22)).unlink()  # as a clean-up of the log does with those before a checkpoint
    assert lake.version(lake.at("t")) == 23
    assert [one.version for one in commits(lake, lake.at("t"), 20)] == [21, 23]
    assert lake.version(lake.at("none")) is None


def test_a_commit_that_says_nothing_of_itself_is_told(spark: SparkSession, lake: Lake, compact: Compact) -> None:
    """As Delta's protocol allows."""
    land(spark, lake, 100, ("c", 1, "a"))
    compact()
    version = lake.version(lake.changes)
    assert version is not None
    Path(commit_file(lake.changes, version + 1)).write_text('{"txn":{"appId":"somebody","version":1}}\n')
    with pytest.raises(LakeError, match=rf"a commit that does not say what it did as version {version + 1}\."):
        compact()


def test_between_those_of_a_killed_run(spark: SparkSession, lake: Lake) -> None:
    """To go back to where the last run ended would take away what was landed since."""
    land(spark, lake, 100, ("c", 1, "a"))
    last = standing(changes_version=lake.version(lake.changes))
    assert not look(lake, last).undone
    land(spark, lake, 200, ("c", 2, "a"))
    append(lake)
    with pytest.raises(LakeError, match=r"WRITE as version 2.*RESTORE TABLE .* TO VERSION AS OF 1;"):
        look(lake, last)
    land(spark, lake, 300, ("c", 3, "a"))
    lost = r"WRITE as version 2.*cannot be taken back: move the folder .*/shop away and run the DAG shop\.snapshot"
    with pytest.raises(LakeError, match=lost):
        look(lake, last)
    DeltaTable(lake.changes).restore(1)
    with pytest.raises(LakeError, match=lost):
        look(lake, last)
