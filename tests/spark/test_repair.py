"""A part of a table is made anew: whatever is wrong in it is right then, and is in the audit table; nothing else is."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as fn

from contract import status
from contract.pipeline import Pipeline
from contract.schema import Column
from readers import noted
from spark.compaction import compaction
from spark.failpoints import hooked
from spark.jobs.repair import MOST_CHUNKS, _choosing
from spark.lake.applied import AppliedSnapshots
from spark.lake.lake import Lake
from spark.mending.apply import Mending
from spark.merging.mended import keys_behind, mended
from spark.merging.parts import parts, put
from spark.proof.differences import CHANGED, CHUNK, EXTRA, MISSING, Difference, next_run, note_checks, note_differences
from spark.tables.schema import Schemas
from tests.spark.changes_by_hand import ITEMS, change, truncation
from tests.spark.lake_by_hand import AT, NAME, checkpoint, executed, ids, item, land, part, seq, stage

Compact = Callable[[], dict[str, Any]]


def damage(spark: SparkSession, lake: Lake, *rows: tuple[int, str]) -> None:
    """Makes these the table's rows, as old as the snapshot is."""
    path = lake.table(*NAME)
    frame = spark.createDataFrame([*rows], "id bigint, name string")
    same = spark.read.format("delta").load(path).select("_seq", "_ts").limit(1)
    made = frame.withColumn("price", fn.lit(None).cast("decimal(10,2)")).crossJoin(same)
    made.write.format("delta").mode("overwrite").save(path)


def audit(spark: SparkSession, lake: Lake) -> list[tuple[Any, ...]]:
    found = spark.read.format("delta").load(lake.at("_repairs"))
    names = fn.expr("transform(columns, one -> one.name)").alias("columns")
    return sorted(tuple(row) for row in found.select("run", "kind", "key", "did", names).collect())


@pytest.fixture
def damaged(spark: SparkSession, lake: Lake, compact: Compact) -> None:
    """Of six rows: 1 is as it should be, 2 is gone, 3 is another, 4 is there twice, 5 is right, 6 is not the source's;
    9 has changed since the rows were read."""
    stage(spark, lake, "1", 50, *(item(n) for n in (1, 2, 3, 4, 5, 9)))
    compact()
    land(spark, lake, change(seq(AT + 1), "u", item(9, "new")))
    compact()
    damage(spark, lake, (1, "a"), (3, "x"), (4, "a"), (4, "a"), (5, "a"), (6, "a"), (9, "x"))


FOUND = [
    ("p1", "changed", '{"id":3}', "replaced", ["name"]),
    ("p1", "changed", '{"id":9}', "replaced", ["name"]),
    ("p1", "duplicate", '{"id":4}', "made one", []),
    ("p1", "extra", '{"id":6}', "removed", []),
    ("p1", "missing", '{"id":2}', "inserted", []),
]


@pytest.mark.usefixtures("damaged")
def test_whatever_is_wrong_is_mended_once_and_told(
    spark: SparkSession, pipeline: Pipeline, lake: Lake, compact: Compact
) -> None:
    at = datetime(2026, 11, 22, tzinfo=UTC)
    known = Difference("shop", "items", CHANGED, '{"id":3}', ("name",), since=at)
    run = next_run(spark, lake, at)
    note_differences(spark, lake, run, [known])
    note_checks(spark, lake, run, {"tables": {"shop.items": {"equal": False}}})
    land(spark, lake, change(seq(AT + 5), "d", item(5)))  # behind the read
    made = part(spark, lake, "p1", AT, *(item(n) for n in (1, 2, 3, 4, 5, 9)))
    report = compact()
    right = [(1, "a"), (2, "a"), (3, "a"), (4, "a"), (9, "new")]
    assert ids(spark, lake) == right
    assert audit(spark, lake) == FOUND
    rows = spark.read.format("delta").load(lake.at("_repairs"))
    assert rows.columns == [*noted.COLUMNS["_repairs"]]
    [row] = rows.where("kind = 'changed' and key = '{\"id\":3}'").collect()
    assert (row["since"].astimezone(UTC), row["check"], row["by"]) == (at, "20261122T000000000Z", "test")
    assert row["columns"][0]["source"] != row["columns"][0]["lake"]
    assert report["parts"]["p1"]["rows"] == {"changed": 2, "duplicate": 1, "extra": 1, "missing": 1}
    told = status.read(pipeline)
    assert told is not None
    assert (told.parts["p1"].refused, told.tables["shop.items"].rows) == (None, 5)
    assert not lake.exists(made.folder(lake))
    version = lake.version(lake.table(*NAME))
    part(spark, lake, "p2", AT, *(item(n) for n in (1, 2, 3, 4, 5, 9)))
    assert compact()["parts"]["p2"]["rows"] == {}
    assert lake.version(lake.table(*NAME)) == version, "what is right is not written again"
    land(spark, lake, change(seq(AT + 9), "u", item(2, "later")))
    compact()
    assert ids(spark, lake)[1] == (2, "later")


def test_a_row_without_a_key_that_was_removed_is_in_nobodys_way(
    spark: SparkSession, lake: Lake, compact: Compact
) -> None:
    """`_repairs` has it, as {"id":null}: a backfill, another part and a snapshot's hand-off look into that."""
    stage(spark, lake, "1", 50, item(1))
    compact()
    damage(spark, lake, (1, "x"), (None, "nobody's"))  # type: ignore[arg-type]
    part(spark, lake, "p1", AT, item(1))
    compact()
    assert [key for _, _, key, *_ in audit(spark, lake)] == ['{"id":1}', '{"id":null}']
    mine = part(spark, lake, "p2", AT, item(1))
    assert mended(spark, lake, mine, AppliedSnapshots(lake).tables[NAME]) == 1
    behind = keys_behind(spark, lake, ITEMS, [0, 1, 50, -1, -1])
    assert behind is not None
    assert [row["id"] for row in behind.collect()] == [1]


@pytest.mark.usefixtures("damaged")
@pytest.mark.parametrize(
    "which", [{"keys": [item(2), item(6)]}, pytest.param({"where": "id in (2, 6)"}, marks=pytest.mark.soak)]
)
def test_a_part_is_all_that_is_touched(
    spark: SparkSession, lake: Lake, compact: Compact, which: dict[str, Any]
) -> None:
    part(spark, lake, "p1", AT, item(2), item(3), **which)  # a collation may give more rows than were asked for
    compact()
    assert ids(spark, lake) == [(1, "a"), (2, "a"), (3, "x"), (4, "a"), (4, "a"), (5, "a"), (9, "x")]


@pytest.mark.soak  # the spellings themselves: test_wanted.py
@pytest.mark.usefixtures("damaged")
def test_a_row_that_was_asked_for_by_two_spellings_of_its_key_is_put_in_once(
    spark: SparkSession, lake: Lake, compact: Compact
) -> None:
    part(spark, lake, "p1", AT, item(2), item(2), keys=[item(2), item(6)])
    assert compact()["parts"]["p1"]["rows"] == {"extra": 1, "missing": 1}
    assert ids(spark, lake)[:2] == [(1, "a"), (2, "a")]
    assert len([row for row in ids(spark, lake) if row[0] == 2]) == 1


class CrashError(Exception):
    pass


@pytest.mark.usefixtures("damaged")
@pytest.mark.parametrize("step", [pytest.param("repair noted", marks=pytest.mark.soak), "part replaced"])
def test_a_run_that_dies_in_a_repair_is_made_good_by_the_next(
    spark: SparkSession, pipeline: Pipeline, lake: Lake, compact: Compact, step: str
) -> None:
    part(spark, lake, "p1", AT, *(item(n) for n in (1, 2, 3, 4, 5, 9)))

    def crash(at: str) -> None:
        if at == step:
            raise CrashError

    with hooked(crash), pytest.raises(CrashError):
        compact()
    assert compact()["parts"]["p1"]["rows"] == {"changed": 2, "duplicate": 1, "extra": 1, "missing": 1}
    assert ids(spark, lake) == [(1, "a"), (2, "a"), (3, "a"), (4, "a"), (5, "a"), (9, "new")]
    assert audit(spark, lake) == FOUND


@pytest.mark.parametrize("step", ["status written", pytest.param("part closed", marks=pytest.mark.soak)])
def test_a_run_that_dies_as_it_clears_up_leaves_a_repair_as_it_was_told(
    spark: SparkSession, pipeline: Pipeline, lake: Lake, compact: Compact, step: str
) -> None:
    """And a snapshot that was read before it is applied as ever."""
    stage(spark, lake, "1", 50, item(1), item(2))
    compact()
    made = part(spark, lake, "p1", AT + 20, item(1, "right"), item(2))

    def crash(at: str) -> None:
        if at == step:
            raise CrashError

    with hooked(crash), pytest.raises(CrashError):
        compact()
    shutil.rmtree(f"{made.folder(lake)}/rows")
    stage(spark, lake, "2", AT + 10, item(1, "wrong"), item(2))
    assert compact()["parts"] == {}
    told = status.read(pipeline)
    assert told is not None
    assert (told.parts["p1"].refused, told.parts["p1"].rows) == (None, {"changed": 1})
    assert not lake.exists(made.folder(lake))
    assert ids(spark, lake) == [(1, "right"), (2, "a")]


@pytest.mark.usefixtures("damaged")
@pytest.mark.parametrize("died", [False, pytest.param(True, marks=pytest.mark.soak)])
def test_a_snapshot_that_read_its_rows_before_a_repair_did_undoes_none_of_it(
    spark: SparkSession, lake: Lake, compact: Compact, died: bool
) -> None:
    """What was mended has no change: the snapshot's rows of these keys are older. `died`: the run did, behind the
    repair, so that the part is still staged."""
    part(spark, lake, "p1", AT + 20, *(item(n) for n in (1, 2, 3, 4, 5)), item(9, "new"))

    def crash(at: str) -> None:
        if died and at == "part replaced":
            raise CrashError

    with hooked(crash), pytest.raises(CrashError) if died else nullcontext():
        compact()
    assert len(parts(lake)) == died
    stage(spark, lake, "2", AT + 10, item(1), item(3, "x"), item(4), item(5), item(6), item(9, "new"))
    compact()
    assert ids(spark, lake) == [(1, "a"), (2, "a"), (3, "a"), (4, "a"), (5, "a"), (9, "new")]
    applied = AppliedSnapshots(lake).tables[NAME]
    assert applied.id == "2"
    asked = part(spark, lake, "p2", AT + 10, item(2), keys=[item(2), item(5), item(6)])
    assert mended(spark, lake, asked, applied) == 2, "nor are they made of the changes behind that snapshot"


@pytest.mark.usefixtures("damaged")
@pytest.mark.soak
def test_of_two_that_read_a_row_the_one_that_read_it_first_undoes_nothing_of_the_other(
    spark: SparkSession, lake: Lake, compact: Compact
) -> None:
    """Whichever is put in its place first: a long one may have begun before the other."""
    part(spark, lake, "p2", AT + 20, item(2, "b"), keys=[item(2), item(6)])
    compact()
    part(spark, lake, "p1", AT + 10, *(item(n) for n in (1, 2, 3, 4, 5, 6)), item(9, "new"))
    assert compact()["parts"]["p1"]["rows"] == {"changed": 2, "duplicate": 1}
    assert ids(spark, lake) == [(1, "a"), (2, "b"), (3, "a"), (4, "a"), (5, "a"), (9, "new")]


def test_where_many_chunks_differ_all_rows_are_read_again() -> None:
    def found(count: int) -> list[Difference]:
        wheres = [f"`id` > {n}" for n in range(count)]
        return [Difference("shop", "items", CHUNK, lake_where=where, source_where=where) for where in wheres]

    shown: Any = SimpleNamespace(schema=ITEMS)
    few, many = (_choosing(found(count))(shown) for count in (2, MOST_CHUNKS + 1))
    assert (few.told, few.where) == ("2 chunks that the last check found", "(`id` > 0) or (`id` > 1)")
    assert (many.told, many.all) == ("all rows, since 101 chunks differ", True)


@pytest.mark.parametrize(
    "found",
    [
        Difference("shop", "items", MISSING, key='{"id":1}'),
        Difference("shop", "items", CHUNK, lake_where="`id` > 1", source_where="`id` > 1"),
    ],
    ids=["row", "chunk"],
)
def test_where_the_key_is_another_one_since_all_rows_are_read_again(found: Difference) -> None:
    of_id: Any = SimpleNamespace(schema=ITEMS)
    of_name: Any = SimpleNamespace(schema=ITEMS.model_copy(update={"key": ("name",)}))
    assert "that the last check found" in _choosing([found])(of_id).told
    anew = _choosing([found])(of_name)
    assert (anew.told, anew.all) == ("all rows, since its key is another one than the last check's", True)


def test_for_a_row_without_a_key_all_rows_are_read_again() -> None:
    found = [
        Difference("shop", "items", EXTRA, key='{"id":null}'),
        Difference("shop", "items", MISSING, key='{"id":1}'),
    ]
    shown: Any = SimpleNamespace(schema=ITEMS)
    assert _choosing(found[1:])(shown).keys == ('{"id":1}',)
    chosen = _choosing(found)(shown)
    assert (chosen.told, chosen.all) == (
        "all rows, since the key of a row that differs has no value in the lake",
        True,
    )


def test_a_part_waits_until_the_lake_has_what_its_rows_may_show(
    spark: SparkSession, lake: Lake, compact: Compact, capsys: pytest.CaptureFixture[str]
) -> None:
    stage(spark, lake, "1", 50, item(1))
    compact()
    made = part(spark, lake, "p1", 2000, item(1, "b"))
    capsys.readouterr()
    assert compact()["parts"] == {}
    assert lake.exists(made.folder(lake))
    assert ids(spark, lake) == [(1, "a")]
    told = f"shop.items: the part p1 of a repair waits until the lake has come to {executed(2000)}"
    assert told in capsys.readouterr().out.splitlines()
    compact()
    assert told not in capsys.readouterr().out, "the looping one has a round every few seconds"


def test_a_part_whose_end_is_on_no_server_any_more_is_refused(
    spark: SparkSession,
    lake: Lake,
    compact: Compact,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The source failed over to a server without the last transactions that the repair's read had shown."""
    stage(spark, lake, "1", 50, item(1), item(2))
    compact()
    made = part(spark, lake, "p1", AT, item(1, "b"))
    put(lake, made.model_copy(update={"p1": executed(2000)}))
    assert compact()["parts"] == {}
    assert "the part p1 of a repair waits until" in capsys.readouterr().out, "it may come yet"
    beyond = checkpoint(400).model_copy(update={"epoch": 1})

    class Moved(compaction.Broker):
        def __init__(self, pipeline: Pipeline) -> None:
            super().__init__(pipeline)
            self.checkpoint = lambda: beyond

    monkeypatch.setattr(compaction, "Broker", Moved)
    whole = part(spark, lake, "p2", AT, item(2, "b"), where="id = 2")
    told = compact()["parts"]
    assert told["p1"]["refused"].startswith("the stream went to another server, or to another place, before the lake")
    assert f"come to {executed(2000)}, " in told["p1"]["refused"]
    assert told["p1"]["refused"].endswith("The table is as it was: run the repair again")
    assert told[whole.id]["refused"] is None, "what is covered is as ever"
    assert (ids(spark, lake), parts(lake)) == ([(1, "a"), (2, "b")], [])


@pytest.mark.soak
def test_of_two_parts_the_one_that_was_read_later_counts_whatever_the_clock_told(
    spark: SparkSession, lake: Lake, compact: Compact
) -> None:
    stage(spark, lake, "1", 50, item(1))
    compact()
    part(spark, lake, "p2", AT, item(1, "old"))
    part(spark, lake, "p1", AT + 5, item(1, "not logged"))  # the clock was set back
    compact()
    assert ids(spark, lake) == [(1, "not logged")]


def test_a_part_with_staged_rows_missing_takes_no_row_out_of_the_table(
    spark: SparkSession, lake: Lake, compact: Compact
) -> None:
    stage(spark, lake, "1", 50, item(1), item(2))
    compact()
    part(spark, lake, "p1", AT, item(1, "b"), count=2)
    told = compact()["parts"]["p1"]["refused"]
    assert "shop.items: the repair staged 2 rows, and" in told
    assert "has 1: something removed the others. The table is as it was; run the repair again" in told
    assert ids(spark, lake) == [(1, "a"), (2, "a")]
    part(spark, lake, "p2", AT, item(1, "b"), item(2))
    assert compact()["parts"]["p2"]["rows"] == {"changed": 1}, "also where nothing was changed since the snapshot"
    assert ids(spark, lake) == [(1, "b"), (2, "a")]


def test_a_part_that_cannot_be_read_is_refused_and_the_others_go_on(
    spark: SparkSession, lake: Lake, compact: Compact
) -> None:
    stage(spark, lake, "1", 50, item(1), item(2))
    compact()
    gone, broken, keyless = (part(spark, lake, id, AT, item(1), keys=[item(1)]) for id in ("p1", "p2", "p3"))
    part(spark, lake, "p4", AT, item(1, "b"), where="id = 1")
    shutil.rmtree(f"{gone.folder(lake)}/rows")
    for file in Path(f"{broken.folder(lake)}/rows").glob("*.parquet"):
        file.write_bytes(b"PAR1 no more")
    Path(f"{keyless.folder(lake)}/keys.json").unlink()
    told = compact()["parts"]
    refused = {id: one["refused"] for id, one in told.items() if one["refused"]}
    assert refused.keys() == {"p1", "p2", "p3"}
    said = "shop.items: the rows that the repair staged are not whole: "
    assert all(one.startswith(said) and one.endswith("run the repair again") for one in refused.values())
    assert ids(spark, lake) == [(1, "b"), (2, "a")]
    assert list(parts(lake)) == []


def test_what_became_of_a_run_s_parts_is_told_of_all_of_them_and_for_days(spark: SparkSession, lake: Lake) -> None:
    def became(id: str, at: float) -> status.PartStatus:
        return status.PartStatus(db="shop", table=id, job="repair", at=int(at * 1000))

    now, many = time.time(), range(status.PARTS + 10)
    mending = Mending(spark, lake, Schemas([ITEMS]), AppliedSnapshots(lake), [], lake.version(lake.changes))
    mending.done = {f"done{n:03d}": became("t", now) for n in many}
    hour = {f"hour{n:03d}": became("t", now - 3600) for n in many}
    month = {f"a{n:03d}": became("t", now - 30 * 86400) for n in many}
    assert mending.told(month | hour).keys() == mending.done.keys() | hour.keys()
    mending.done = {}
    assert [*mending.told(month)] == [*month][-status.PARTS :]


def test_a_part_that_holds_no_more_is_refused_with_the_reason(
    spark: SparkSession, lake: Lake, compact: Compact
) -> None:
    stage(spark, lake, "1", 50, item(1))
    land(spark, lake, change(seq(AT + 7), "u", item(1, "new"), ITEMS.model_copy(update={"key": ("id", "name")})))
    compact()
    part(spark, lake, "p0", 40, item(1, "old"))
    other = ITEMS.model_copy(update={"columns": (Column(name="id", type="date"), *ITEMS.columns[1:])})
    part(spark, lake, "p1", AT, of=other)
    told = compact()["parts"]
    snapshots = AppliedSnapshots(lake)
    snapshots.note(NAME, snapshots.tables[NAME].model_copy(update={"gap": True}))
    part(spark, lake, "p2", AT, item(1, "of changes"), source="changes")
    told |= compact()["parts"]
    assert "shop.items lacks changes, and so do rows that were made of them" in told["p2"]["refused"]
    assert "the snapshot 1 has read all of shop.items since" in told["p0"]["refused"]
    assert "run the snapshot DAG, or `headrace snapshot`, for the table" in told["p1"]["refused"]
    assert ids(spark, lake) == [(1, "new")]


@pytest.mark.soak
def test_rows_that_were_read_before_a_truncation_do_not_come_back(
    spark: SparkSession, lake: Lake, compact: Compact
) -> None:
    stage(spark, lake, "1", 50, item(1))
    compact()
    land(spark, lake, truncation(seq(AT + 5)), change(seq(AT + 6), "c", item(7)))
    part(spark, lake, "p1", AT, item(1), item(2))
    assert compact()["parts"]["p1"]["rows"] == {}
    assert ids(spark, lake) == [(7, "a")]
