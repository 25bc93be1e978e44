"""The hand-off: the table is the snapshot's rows and the changes after P0, whatever comes late, twice or half."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract import status
from contract.pipeline import Pipeline
from contract.schema import Column, TableSchema
from contract.sequence import Sequence
from spark.errors import TableStoppedError
from spark.failpoints import hooked
from spark.lake.applied import Applied, AppliedSnapshots
from spark.lake.growing import moment_id
from spark.lake.lake import Lake
from spark.lake.manifests import MANIFEST
from spark.lake.unfinished import BEAT
from spark.mending.choice import blocked
from spark.merging.handoff import apply_ready
from spark.merging.tables import Merging
from spark.snapshot.resume import ABANDONED, Resume
from spark.tables.schema import Schemas
from tests.power_cut import disk
from tests.spark.changes_by_hand import ITEMS, LINES, change, changes, truncation
from tests.spark.lake_by_hand import AT, NAME, checkpoint, executed, ids, item, land, merge, seq, stage, unwatched


def test_what_the_source_removed_without_an_event_stays_away(
    spark: SparkSession, lake: Lake, compact: Callable[[], dict[str, Any]]
) -> None:
    """Rows inserted, the table truncated, the snapshot: all of it in one run."""
    land(spark, lake, change(seq(5), "c", item(1)), change(seq(AT - 1), "c", item(2)))
    land(spark, lake, change(seq(AT), "c", item(3)))
    stage(spark, lake, "1", AT, item(4))
    report = compact()
    assert ids(spark, lake) == [(3, "a"), (4, "a")]
    facts = {"rows": 2, "changes": 3, "snapshot": True, "stopped": None, "stale": None, "outdated": None}
    facts |= {"unread": None, "unequal": None, "foreign": None, "ahead": None}
    assert report["tables"] == {"shop.items": facts}


def test_a_change_older_than_the_snapshot_that_comes_in_a_later_run_is_passed_by(
    spark: SparkSession, lake: Lake, compact: Callable[[], dict[str, Any]]
) -> None:
    stage(spark, lake, "1", AT, item(4))
    compact()
    land(spark, lake, change(seq(7), "c", item(1)), change(seq(8), "d", item(4)))
    land(spark, lake, change(seq(9), "u", item(4, "old")), change(seq(AT + 7), "c", item(5)))
    compact()
    assert ids(spark, lake) == [(4, "a"), (5, "a")]


def test_a_stopped_table_goes_on_behind_its_snapshot(spark: SparkSession, lake: Lake) -> None:
    unknown: TableSchema = ITEMS.model_copy(update={"version": 9})
    first = [change(seq(5), "c", item(1)), change(seq(6), "c", item(2), unknown)]
    land(spark, lake, *first, change(seq(AT + 5), "u", item(4, "new")))
    before = Merging(spark, lake, Schemas([ITEMS]), unwatched(lake))
    before._batch(changes(spark, *first), 0, "q")
    assert "schema version 9" in before.stopped.tables[NAME].reason
    stage(spark, lake, "1", AT, item(4))
    floors = apply_ready(spark, lake).snapshots.floors()
    after = Merging(spark, lake, Schemas([ITEMS]), unwatched(lake), floors)
    after.retry()
    assert after.stopped.tables == {}
    assert ids(spark, lake) == [(4, "new")]


def test_a_table_takes_a_snapshot_by_a_key_that_it_has_no_column_of(
    spark: SparkSession, lake: Lake, compact: Callable[[], dict[str, Any]]
) -> None:
    stage(spark, lake, "1", AT, item(1), item(2))
    land(spark, lake, change(seq(AT + 5), "u", item(1, "changed")))
    compact()
    numbered = Column(name="wid", type="bigint", nullable=False)
    facts = {"version": 2, "columns": (numbered, *ITEMS.columns), "key": ("wid",), "since": Sequence(0, 1, AT + 6)}
    stage(spark, lake, "2", AT + 10, {"wid": 7, **item(1, "read")}, of=ITEMS.model_copy(update=facts))
    told = compact()["tables"]["shop.items"]
    assert (told["stopped"], told["snapshot"]) == (None, True)
    assert ids(spark, lake) == [(1, "read")]


@pytest.mark.parametrize("first", [True, False])
def test_values_of_a_type_that_was_widened_since_the_rows_were_read_stay(
    spark: SparkSession, lake: Lake, first: bool
) -> None:
    """A snapshot of many tables is applied when the last was read; meanwhile the first one's changes were merged."""
    if not first:
        stage(spark, lake, "1", AT - 10, item(4))
        apply_ready(spark, lake)
    price = Column(name="price", type="decimal", precision=14, scale=4)
    wide = ITEMS.model_copy(update={"version": 2, "columns": (*ITEMS.columns[:2], price), "since": Sequence(0, 1, 5)})
    came = [change(seq(AT + pos), "c", {**item(pos), "price": "1234567890.1250"}, wide) for pos in (5, 7)]
    land(spark, lake, *came)
    floors = AppliedSnapshots(lake).floors()
    Merging(spark, lake, Schemas([ITEMS, wide]), unwatched(lake), floors)._batch(changes(spark, *came), 0, "q")
    stage(spark, lake, "2", AT, {**item(6), "price": "2.50"})
    floors = apply_ready(spark, lake, lake.frame(lake.changes)).snapshots.floors()
    after = Merging(spark, lake, Schemas([ITEMS, wide]), unwatched(lake), floors)
    after.retry()
    assert after.stopped.tables == {}
    rows = spark.read.format("delta").load(lake.table(*NAME)).orderBy("id").collect()
    assert [(row["id"], str(row["price"])) for row in rows] == [
        (5, "1234567890.1250"), (6, "2.5000"), (7, "1234567890.1250")
    ]  # fmt: skip


class CrashError(Exception):
    pass


MOVE = "newer rows taken in", "table made way", "snapshot written", "snapshot noted"
SHORT = [("table made way", True)]
EACH = [(step, power) for step in MOVE for power in (False, True)]


@pytest.mark.parametrize(
    ("step", "power"), [one if one in SHORT else pytest.param(*one, marks=pytest.mark.soak) for one in EACH]
)
def test_a_run_that_dies_in_the_hand_off_is_made_good_by_the_next(
    spark: SparkSession,
    pipeline: Pipeline,
    lake: Lake,
    compact: Callable[[], dict[str, Any]],
    step: str,
    power: bool,
) -> None:
    """The first time, when the staged rows take the table's place: it has newer ones, which come no more, and
    more versions than they. `power`: what was not on the disk by then went, too."""
    older = [change(seq(5), "c", item(1)), change(seq(AT + 1), "c", item(7))]
    older += [change(seq(AT + 2), "u", item(5, "newer")), change(seq(AT + 3), "d", item(6))]
    merge(spark, lake, *older)
    land(spark, lake, *older)
    compact()
    land(spark, lake, change(seq(6), "c", item(2)), change(seq(AT + 5), "u", item(4, "new")))
    manifest = stage(spark, lake, "1", AT, item(4), item(5), item(6))

    def crash(at: str) -> None:
        if at == step:
            raise CrashError

    with disk(lake.root, step) as known:
        with hooked(crash), pytest.raises(CrashError):
            compact()
        if power:
            known.cut()
            lake.forget_logs()
    assert lake.exists(manifest.folder(lake))
    compact()
    assert ids(spark, lake) == [(4, "new"), (5, "newer"), (7, "a")]
    standing = status.read(pipeline)
    assert standing is not None
    table = standing.tables["shop.items"]
    assert (table.rows, table.changes) == (3, 6)
    assert table.snapshot is not None
    assert (table.snapshot.id, table.snapshot.rows, table.snapshot.p1) == ("1", 3, executed(AT))
    assert not lake.exists(manifest.folder(lake))
    compact()
    assert status.read(pipeline).tables["shop.items"].snapshot == table.snapshot  # type: ignore[union-attr]


@pytest.mark.parametrize("step", [pytest.param("snapshot written", marks=pytest.mark.soak), "snapshot noted"])
def test_so_is_one_that_writes_the_table_anew(
    spark: SparkSession, lake: Lake, compact: Callable[[], dict[str, Any]], step: str
) -> None:
    stage(spark, lake, "1", AT, item(1))
    land(spark, lake, change(seq(AT + 60), "c", item(7)), change(seq(AT + 61), "u", item(5, "newer")))
    compact()
    before = lake.version(lake.table(*NAME))
    stage(spark, lake, "2", AT + 50, item(4), item(5))

    def crash(at: str) -> None:
        if at == step:
            raise CrashError

    with hooked(crash), pytest.raises(CrashError):
        compact()
    report = compact()
    assert ids(spark, lake) == [(4, "a"), (5, "newer"), (7, "a")]
    assert report["tables"]["shop.items"]["foreign"] is None
    now = lake.version(lake.table(*NAME))
    assert before is not None
    assert now is not None
    assert now > before, "who reads the table by its versions goes on"


@pytest.mark.parametrize("first", [True, pytest.param(False, marks=pytest.mark.soak)])
def test_no_row_is_missing_until_its_change_is_merged(
    spark: SparkSession, lake: Lake, compact: Callable[[], dict[str, Any]], first: bool
) -> None:
    """Of who reads the table meanwhile, and for as long as no run comes to the merge. A change that is merged stays."""
    if not first:
        stage(spark, lake, "1", AT - 50, item(4), item(5), item(6))
    land(spark, lake, change(seq(AT + 2), "c", item(7)), change(seq(AT + 3), "d", item(6)))
    compact()
    land(spark, lake, change(seq(AT + 60), "u", item(5, "newer")), change(seq(AT + 61), "d", item(4)))
    stage(spark, lake, "2", AT, item(4), item(5), item(6))

    def crash(at: str) -> None:
        if at == "snapshot noted":
            raise CrashError

    with hooked(crash), pytest.raises(CrashError):
        compact()
    assert ids(spark, lake) == [(4, "a"), (5, "a"), (7, "a")]
    compact()
    assert ids(spark, lake) == [(5, "newer"), (7, "a")]


def test_the_table_before_goes_as_a_whole(
    spark: SparkSession, lake: Lake, compact: Callable[[], dict[str, Any]]
) -> None:
    """A log of which a part is left could not be read by anybody."""
    land(spark, lake, change(seq(AT + 1), "c", item(7)))
    compact()
    log = lake.commits(path := lake.table(*NAME))
    manifest = stage(spark, lake, "1", AT, item(4))
    aside, seen = f"{manifest.rows(lake, ITEMS)}.before", list[object]()

    def crash(at: str) -> None:
        if at == "table made way":
            seen.extend([lake.exists(path), lake.commits(aside)])
            raise CrashError

    with hooked(crash), pytest.raises(CrashError):
        compact()
    assert seen == [False, log]
    compact()
    assert ids(spark, lake) == [(4, "a"), (7, "a")]
    assert not lake.exists(aside)


def test_the_newer_of_two_snapshots_wins(spark: SparkSession, lake: Lake) -> None:
    stage(spark, lake, "1", AT, item(1), item(2))
    stage(spark, lake, "2", AT + 50, item(2, "newer"), item(3))
    done = apply_ready(spark, lake)
    assert ids(spark, lake) == [(2, "newer"), (3, "a")]
    assert done.snapshots.floors() == {NAME: [0, 1, AT + 50, -1, -1]}
    again = apply_ready(spark, lake)
    assert (again.applied, again.snapshots.tables) == (set(), done.snapshots.tables)


def test_a_table_that_cannot_take_its_snapshot_says_why_until_one_fits(spark: SparkSession, lake: Lake) -> None:
    keyless = ITEMS.model_copy(update={"key": ()})
    manifest = stage(spark, lake, "1", AT, item(1))
    lake.write(
        f"{manifest.folder(lake)}/{MANIFEST}", manifest.model_copy(update={"tables": [keyless]}).model_dump(mode="json")
    )
    for _ in range(2):
        assert "no primary key" in apply_ready(spark, lake).refused[NAME]
    stage(spark, lake, "2", AT, item(1))
    done = apply_ready(spark, lake)
    assert (done.refused, done.applied) == ({}, {NAME})
    apply_ready(spark, lake)
    assert lake.list(lake.at("_staging")) == []


def test_a_staging_with_rows_missing_is_refused_and_the_table_stays(spark: SparkSession, lake: Lake) -> None:
    stage(spark, lake, "1", AT, item(1), item(2))
    apply_ready(spark, lake)
    manifest = stage(spark, lake, "2", AT + 50, item(1), item(2))
    more = manifest.model_copy(update={"counts": {"shop.items": 3}})
    lake.write(f"{manifest.folder(lake)}/{MANIFEST}", more.model_dump(mode="json"))
    assert "read 3 rows" in (refused := apply_ready(spark, lake).refused[NAME])
    assert "run the snapshot DAG" in refused
    for file in Path(manifest.rows(lake, ITEMS)).glob("*.parquet"):
        file.unlink()
    assert "has 0" in apply_ready(spark, lake).refused[NAME]
    assert ids(spark, lake) == [(1, "a"), (2, "a")]


@pytest.mark.soak
def test_only_a_staging_that_no_snapshot_writes_any_more_is_swept(spark: SparkSession, lake: Lake) -> None:
    stage(spark, lake, "ready", AT, item(1))
    for name, age in (("running", 60.0), ("killed", 2 * ABANDONED)):
        lake.write(lake.at("_staging", name, BEAT), {"at": time.time() - age})
    lake.write(lake.at("_staging", "without", "part"), {})
    just, long_ago = (moment_id(time.time() - age) for age in (1.0, 2 * ABANDONED))
    for name in (just, long_ago):
        lake.write(lake.at("_staging", name, "part"), {})
    new = Resume(lake, checkpoint(AT), print).job(["shop.items"])
    assert lake.list(lake.at("_staging")) == sorted([just, new.id, "ready", "running"])


def test_keys_are_compared_by_value_where_a_key_column_changed_while_it_was_read(
    spark: SparkSession, lake: Lake
) -> None:
    number = Column(name="n", type="int")
    older, finer, other = (
        TableSchema(db="shop", table="days", version=n, columns=(key, number), key=("d",))
        for n, key in enumerate((Column(name="d", type="datetime"), Column(name="d", type="datetime", fsp=3),
                                 Column(name="d", type="int")), 1)
    )  # fmt: skip
    land(spark, lake, change(seq(AT + 1), "u", {"d": "2026-01-01 00:00:00", "n": 2}, older))
    stage(spark, lake, "1", AT, {"d": "2026-01-01 00:00:00.000", "n": 1}, of=finer)
    merged = lake.frame(lake.changes, lake.version(lake.changes))
    assert apply_ready(spark, lake, merged).applied == {("shop", "days")}
    assert spark.read.format("delta").load(lake.table("shop", "days")).count() == 0  # the change brought the row
    stage(spark, lake, "2", AT, {"d": 5, "n": 1}, of=other)
    assert "run the snapshot DAG" in apply_ready(spark, lake, merged).refused["shop", "days"]


def test_a_key_without_a_value_stops_its_table_alone(spark: SparkSession, lake: Lake) -> None:
    days = TableSchema(db="shop", table="days", version=1, columns=(Column(name="d", type="date"),), key=("d",))
    with pytest.raises(TableStoppedError, match="primary key has no value in the lake"):
        stage(spark, lake, "1", AT, {"d": "2024-00-00"}, of=days)
    stage(spark, lake, "2", AT, item(1))
    apply_ready(spark, lake)
    assert ids(spark, lake) == [(1, "a")]


@pytest.mark.parametrize("first", ["truncation", pytest.param("snapshot", marks=pytest.mark.soak)])
def test_rows_that_were_read_before_a_truncation_do_not_come_back(
    spark: SparkSession, lake: Lake, compact: Callable[[], dict[str, Any]], first: str
) -> None:
    land(spark, lake, change(seq(5), "c", item(1)))
    compact()
    steps = [
        lambda: land(spark, lake, truncation(seq(AT + 5)), change(seq(AT + 6), "c", item(7))),
        lambda: stage(spark, lake, "1", AT, item(1), item(2)),
    ]
    for step in steps if first == "truncation" else reversed(steps):
        step()
        report = compact()
    assert ids(spark, lake) == [(7, "a")]
    assert report["tables"]["shop.items"]["rows"] == 1
    stage(spark, lake, "2", AT + 50, item(7, "newer"), item(8))
    compact()
    assert ids(spark, lake) == [(7, "newer"), (8, "a")]


def test_a_staging_waits_while_its_table_is_excluded(
    spark: SparkSession, pipeline: Pipeline, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the compaction alone, since the streamer takes up an edit later, or never: the changes of it go on."""
    manifest = stage(spark, lake, "1", AT, item(1), item(4))
    tables = pipeline.tables.model_copy(update={"exclude": ("shop.items",)})
    monkeypatch.setattr(lake, "pipeline", pipeline.model_copy(update={"tables": tables}))
    assert apply_ready(spark, lake).applied == set()
    assert lake.exists(manifest.rows(lake, ITEMS))
    land(spark, lake, change(seq(AT + 5), "u", item(4, "new")))
    monkeypatch.setattr(lake, "pipeline", pipeline)
    assert apply_ready(spark, lake).applied == {NAME}
    assert ids(spark, lake) == [(1, "a"), (4, "a")]
    assert not lake.exists(manifest.folder(lake))


def test_a_staging_that_stays_for_another_table_is_no_way_back_for_one_that_has_it(
    spark: SparkSession, lake: Lake
) -> None:
    manifest = stage(spark, lake, "1", AT, item(1))
    both = manifest.model_copy(update={"tables": [*manifest.tables, LINES]})
    lake.write(f"{both.folder(lake)}/{MANIFEST}", both.model_dump(mode="json"))
    stale = status.TableStatus(db="shop", table="items", rows=1, changes=0, version=1, outdated="rules")
    known = SimpleNamespace(tables={"shop.items": stale})
    assert "a snapshot of it is staged" in str(blocked(lake, known, NAME))  # type: ignore[arg-type]
    shape = {"id": "1", "p0": "", "p1": "", "rows": 1, "applied_at": 1, "floor": [0, 1, AT, -1, -1]}
    AppliedSnapshots(lake).note(NAME, Applied.model_validate(shape))
    assert "is staged" not in str(blocked(lake, known, NAME))  # type: ignore[arg-type]
