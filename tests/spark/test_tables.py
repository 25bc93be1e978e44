"""Step 2: the tables are what the changes make of them, in any order of delivery, once or twice."""

from __future__ import annotations

import json
from decimal import Decimal
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract.schema import Column, TableSchema
from spark.errors import TableStoppedError
from spark.failpoints import hooked
from spark.lake.lake import Lake
from spark.merging.tables import Merging
from spark.tables.schema import Schemas, columns_of, fields
from tests.spark.changes_by_hand import ITEMS, LINES, change, changes, truncation
from tests.spark.lake_by_hand import unwatched

WIDER = ITEMS.model_copy(
    update={"version": 2, "columns": (*ITEMS.columns, Column(name="note", type="varchar", length=9))}
)
NARROWER = ITEMS.model_copy(update={"version": 3, "columns": ITEMS.columns[:2]})
OTHER_TYPE = ITEMS.model_copy(
    update={"version": 4, "columns": (ITEMS.columns[0], Column(name="name", type="int"), ITEMS.columns[2])}
)
DAYS = TableSchema(db="shop", table="days", version=1, columns=(Column(name="d", type="date"),), key=("d",))
MOMENTS = DAYS.model_copy(update={"columns": (Column(name="d", type="datetime"), Column(name="n", type="int"))})
FINER = MOMENTS.model_copy(
    update={"version": 2, "columns": (Column(name="d", type="datetime", fsp=3), Column(name="n", type="int"))}
)
RATES = TableSchema(db="shop", table="rates", version=1, columns=(Column(name="r", type="double"),), key=("r",))
NO_KEY = TableSchema(db="shop", table="heap", version=1, columns=ITEMS.columns, key=())


def seq(pos: int, row: int = 0) -> tuple[int, int, int, int, int]:
    return 0, 1, pos, 0, row


def item(n: int, name: str | None = "a", price: str | None = "1.00") -> dict[str, Any]:
    return {"id": n, "name": name, "price": price}


def merging(spark: SparkSession, lake: Lake, *schemas: TableSchema) -> Merging:
    return Merging(spark, lake, Schemas(schemas or (ITEMS, LINES)), unwatched(lake))


def rows(spark: SparkSession, lake: Lake, table: str = "items") -> list[tuple[Any, ...]]:
    frame = spark.read.format("delta").load(lake.table("shop", table)).drop("_seq", "_ts")
    return sorted(map(tuple, frame.collect()), key=str)


def test_inserts_updates_and_deletes(spark: SparkSession, lake: Lake) -> None:
    step = merging(spark, lake)
    step._batch(changes(spark, *[change(seq(n), "c", item(n)) for n in (1, 2, 3)]), 0, "q")
    step._batch(changes(spark, change(seq(4), "u", item(2, "b", "2.50")), change(seq(5), "d", item(3))), 1, "q")
    assert rows(spark, lake) == [(1, "a", Decimal("1.00")), (2, "b", Decimal("2.50"))]
    assert step.merged == {("shop", "items"): 5}
    last = spark.read.format("delta").load(lake.table("shop", "items")).where("id = 2").select("_seq").first()
    assert last is not None
    assert tuple(last[0]) == seq(4)


def test_a_batch_that_comes_again_changes_nothing(spark: SparkSession, lake: Lake) -> None:
    step = merging(spark, lake)
    first = changes(spark, change(seq(1), "c", item(1)), change(seq(2), "c", item(2)))
    second = changes(spark, change(seq(3), "u", item(1, "b")), change(seq(4), "d", item(2)))
    step._batch(first, 0, "q")
    for _ in range(2):
        step._batch(second, 1, "q")
    assert rows(spark, lake) == [(1, "b", Decimal("1.00"))]


def test_only_the_newest_change_of_a_key_counts(spark: SparkSession, lake: Lake) -> None:
    mixed = [change(seq(9), "d", item(1)), change(seq(7), "u", item(1, "late")), change(seq(6), "c", item(1))]
    numbers = [change(seq(100), "u", item(2, "new")), change(seq(20), "c", item(2, "old"))]  # 100 > 20, not "100"
    merging(spark, lake)._batch(changes(spark, *mixed, *numbers), 0, "q")
    assert rows(spark, lake) == [(2, "new", Decimal("1.00"))]


def test_an_older_change_never_moves_a_row_back(spark: SparkSession, lake: Lake) -> None:
    step = merging(spark, lake)
    step._batch(changes(spark, change(seq(9), "c", item(1, "new"))), 0, "q")
    step._batch(changes(spark, change(seq(5), "u", item(1, "old"))), 1, "q")
    step._batch(changes(spark, change(seq(6), "d", item(1))), 2, "q")
    assert rows(spark, lake) == [(1, "new", Decimal("1.00"))]


def test_of_a_thousand_files_and_more_an_older_one_brings_no_row_back(spark: SparkSession, lake: Lake) -> None:
    """As when partitions were added to the topic: a key's deletion lands from the new one, what was before it later."""
    for some in (change(seq(2000), "d", item(1)), change(seq(2), "c", item(2))):
        changes(spark, some).coalesce(1).write.format("delta").mode("append").save(lake.changes)
    landed_again(Path(lake.changes), 1001)
    changes(spark, change(seq(1), "c", item(1))).write.format("delta").mode("append").save(lake.changes)
    merging(spark, lake).run()
    assert [row[0] for row in rows(spark, lake)] == [2]


def landed_again(path: Path, times: int) -> None:
    """The last file of the table, so many times under other names in one commit more: to write them takes longer."""
    log = path / "_delta_log"
    last = max(log.glob("*.json"))
    [add] = [one for line in last.read_text().splitlines() if (one := json.loads(line).get("add"))]
    names = [f"{n}-{add['path']}" for n in range(times)]
    for name in names:
        (path / name).hardlink_to(path / add["path"])
    commit = "".join(json.dumps({"add": {**add, "path": name}}) + "\n" for name in names)
    (log / f"{int(last.stem) + 1:020}.json").write_text(commit)


def test_a_key_that_moves(spark: SparkSession, lake: Lake) -> None:
    step = merging(spark, lake)
    step._batch(changes(spark, change(seq(1), "c", item(1))), 0, "q")
    step._batch(changes(spark, change(seq(2, 0), "d", item(1)), change(seq(2, 1), "c", item(5))), 1, "q")
    assert rows(spark, lake) == [(5, "a", Decimal("1.00"))]


def test_composite_keys_and_keys_that_differ_by_case(spark: SparkSession, lake: Lake) -> None:
    big = 18446744073709551615
    lines = [{"region": r, "n": n, "qty": 1} for r, n in (("a", 1), ("A", 1), ("a", big))]
    step = merging(spark, lake)
    step._batch(changes(spark, *[change(seq(at), "c", line, LINES) for at, line in enumerate(lines)]), 0, "q")
    step._batch(changes(spark, change(seq(9), "d", lines[2], LINES)), 1, "q")
    assert rows(spark, lake, "lines") == [("A", Decimal(1), 1), ("a", Decimal(1), 1)]


def test_an_added_column_appears_and_a_dropped_one_is_null(spark: SparkSession, lake: Lake) -> None:
    step = merging(spark, lake, ITEMS, WIDER, NARROWER)
    step._batch(changes(spark, change(seq(1), "c", item(1))), 0, "q")
    both = [change(seq(2), "c", item(2)), change(seq(3), "c", {**item(3), "note": "n"}, WIDER)]
    step._batch(changes(spark, *both), 1, "q")
    step._batch(changes(spark, change(seq(4), "u", {"id": 3, "name": "c"}, NARROWER)), 2, "q")
    columns = spark.read.format("delta").load(lake.table("shop", "items")).columns
    assert columns == ["id", "name", "price", "note", "_seq", "_ts"]
    one = Decimal("1.00")
    assert rows(spark, lake) == [(1, "a", one, None), (2, "a", one, None), (3, "c", None, None)]


def test_one_table_stops_and_the_others_go_on_and_nothing_of_it_is_lost(spark: SparkSession, lake: Lake) -> None:
    line = {"region": "a", "n": 1, "qty": 1}
    first = [change(seq(1), "c", item(1)), change(seq(2), "c", line, LINES)]
    other = {"id": 2, "name": 7, "price": "1.00"}
    second = [change(seq(3), "c", other, OTHER_TYPE), change(seq(4), "u", {**line, "qty": 2}, LINES)]
    everything = changes(spark, *first, *second)
    everything.write.format("delta").save(lake.changes)
    step = merging(spark, lake, ITEMS, OTHER_TYPE, LINES)
    step._batch(changes(spark, *first), 0, "q")
    step._batch(changes(spark, *second), 1, "q")
    assert rows(spark, lake, "lines") == [("a", Decimal(1), 2)]
    stop = step.stopped.tables[("shop", "items")]
    assert "shop.items" in stop.reason
    assert "name is bigint now and string in the lake" in stop.reason
    # A later run, to which the lake's type is the newest again: what waited is merged, old and new.
    later = merging(spark, lake, ITEMS, OTHER_TYPE, ITEMS.model_copy(update={"version": 5}))
    assert later._again(("shop", "items"), stop)
    assert rows(spark, lake) == [(1, "a", Decimal("1.00")), (2, "7", Decimal("1.00"))]


@pytest.mark.parametrize(
    ("schema", "row", "said"),
    [
        (NO_KEY, item(1), "shop.heap has no primary key"),
        (RATES, {"r": 0.5}, "has the column r of type double: no text of it is exact"),
        (RATES, {"r": 0.5}, "the streamer stops at its next change, whatever keys in the pipeline file says"),
        (ITEMS.model_copy(update={"version": 9}), item(1), "schema version 9"),
        (ITEMS, item(1, price="not a number"), "shop.items: a value does not fit"),
        (ITEMS, {**item(1), "id": "x"}, "shop.items: a value does not fit"),
        (
            ITEMS.model_copy(update={"db": "_staging"}),
            item(1),
            "_staging.items: _staging is a folder of the lake's own",
        ),
        (ITEMS.model_copy(update={"table": "_delta_log"}), item(1), "shop._delta_log: Delta takes a folder"),
        (ITEMS.model_copy(update={"table": "受" * 20}), item(1), "longer than 220 characters as folders"),
        (DAYS, {"d": "2024-00-00"}, "shop.days: a row's primary key has no value in the lake"),
        (ITEMS.model_copy(update={"columns": (*ITEMS.columns, Column(name="a b", type="int"))}), item(1), "'a b'"),
    ],
    ids=[
        "no key",
        "an inexact key",
        "what becomes of it",
        "unknown version",
        "wrong value",
        "wrong wire type",
        "the lake's own folder",
        "Delta's own folder",
        "long name",
        "partial date as key",
        "column name",
    ],
)
def test_what_cannot_be_merged_says_why(
    spark: SparkSession, lake: Lake, schema: TableSchema, row: dict[str, Any], said: str
) -> None:
    known = () if said.startswith("schema version") else (schema,)
    step = merging(spark, lake, ITEMS, *known)
    step._batch(changes(spark, change(seq(1), "c", row, schema)), 0, "q")
    [stop] = step.stopped.tables.values()
    assert said in stop.reason
    assert stop.since == list(seq(1))
    assert merging(spark, lake).stopped.tables == step.stopped.tables  # the next run knows


@pytest.mark.parametrize("row", [item(1, price="Zebrafink"), {**item(1), "id": "Zebrafink"}], ids=["value", "key"])
def test_what_does_not_fit_is_in_the_log_and_not_in_the_reason(
    spark: SparkSession, lake: Lake, row: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    """A reason goes to the status, to alerts and their webhook, where no erasure looks."""
    step = merging(spark, lake, ITEMS)
    step._batch(changes(spark, change(seq(1), "c", row, ITEMS)), 0, "q")
    [stop] = step.stopped.tables.values()
    assert "Zebrafink" not in stop.reason
    assert "Zebrafink" in capsys.readouterr().out


def test_a_database_whose_name_has_a_dot_is_not_taken_for_another() -> None:
    with pytest.raises(TableStoppedError, match=r"^sh\.op\.items: its database's name has a dot, .* a table of sh\."):
        fields(ITEMS.model_copy(update={"db": "sh.op"}))


@pytest.mark.parametrize("batches", [1, 2])
def test_a_key_whose_text_changes_with_its_columns_type_is_one_row(
    spark: SparkSession, lake: Lake, batches: int
) -> None:
    made = change(seq(1), "c", {"d": "2026-01-01 00:00:00", "n": 1}, MOMENTS)
    moved = change(seq(2), "u", {"d": "2026-01-01 00:00:00.000", "n": 2}, FINER)
    step = merging(spark, lake, MOMENTS, FINER)
    for number, some in enumerate([[made, moved]] if batches == 1 else [[made], [moved]]):
        step._batch(changes(spark, *some), number, "q")
    assert step.stopped.tables == {}
    assert [n for _, n in rows(spark, lake, "days")] == [2]


def sized(version: int, digits: int, key: str = "int") -> TableSchema:
    """Items with a price of so many digits, two of them behind the point."""
    number = Column(name="id", type=key, unsigned=True, nullable=False)
    price = Column(name="price", type="decimal", precision=digits, scale=2)
    return ITEMS.model_copy(update={"version": version, "columns": (number, ITEMS.columns[1], price)})


@pytest.mark.parametrize("batches", [pytest.param(1, marks=pytest.mark.soak), 3])
def test_a_number_of_more_digits_is_carried(spark: SparkSession, lake: Lake, batches: int) -> None:
    """The table is written anew from itself, once for each shape; changes of shapes before may come again behind it."""
    first, second, third = sized(1, 10), sized(2, 12), sized(3, 14, "bigint")
    came = [
        [change(seq(1), "c", item(1, price="1.50"), first), change(seq(2), "c", item(2), first)],
        [change(seq(3), "u", item(1, "b", "1234567890.50"), second)],
        [change(seq(4), "d", item(2), first), change(seq(5), "c", item(2**64 - 1, price="123456789012.50"), third)],
    ]
    step, widened = merging(spark, lake, first, second, third), list[str]()
    with hooked(lambda at: widened.append(at) if at == "columns widened" else None):
        for number, some in enumerate(came if batches == 3 else [[*chain.from_iterable(came)]]):
            for _ in range(2):
                step._batch(changes(spark, *some), number, "q")
    assert step.stopped.tables == {}
    wanted = [(1, "b", Decimal("1234567890.50")), (2**64 - 1, "a", Decimal("123456789012.50"))]
    assert rows(spark, lake) == wanted
    kinds = columns_of(spark, lake.table("shop", "items"))
    assert (kinds["id"], kinds["price"]) == ("decimal(20,0)", "decimal(14,2)")
    assert widened == ["columns widened"] * 2


def test_a_number_of_fewer_digits_stops_the_table(spark: SparkSession, lake: Lake) -> None:
    wide, narrow = sized(1, 12), sized(2, 10)
    step = merging(spark, lake, wide, narrow)
    step._batch(changes(spark, change(seq(1), "c", item(1), wide), change(seq(2), "u", item(1), narrow)), 0, "q")
    [stop] = step.stopped.tables.values()
    assert "price is decimal(10,2) now and decimal(12,2) in the lake" in stop.reason


def test_an_excluded_table_waits_without_a_word_and_goes_on_where_it_was(spark: SparkSession, lake: Lake) -> None:
    first, second = change(seq(1), "c", item(1)), change(seq(2), "c", item(2))
    changes(spark, first, second).write.format("delta").save(lake.changes)
    merging(spark, lake)._batch(changes(spark, first), 0, "q")
    globs = lake.pipeline.tables.model_copy(update={"exclude": ("*.items",)})
    without = Lake(spark, lake.pipeline.model_copy(update={"tables": globs}))
    excluded = merging(spark, without)
    excluded._batch(changes(spark, second), 1, "q")
    excluded.retry()
    assert [n for n, *_ in rows(spark, lake)] == [1]
    back = merging(spark, lake)
    back.retry()
    assert [n for n, *_ in rows(spark, lake)] == [1, 2]
    assert back.stopped.tables == {}


def test_a_truncation_drops_what_is_older_whenever_it_comes(spark: SparkSession, lake: Lake) -> None:
    """It comes once in each partition; one partition may be read ahead of another."""
    step = merging(spark, lake)
    step._batch(changes(spark, change(seq(1), "c", item(1)), change(seq(2), "c", item(2))), 0, "q")
    again = [
        truncation(seq(5)),
        change(seq(6), "c", item(1, "new")),
        change(seq(4), "u", item(2, "b")),
        truncation(seq(5)),
    ]
    for _ in range(2):
        step._batch(changes(spark, *again), 1, "q")
        assert rows(spark, lake) == [(1, "new", Decimal("1.00"))]
    later = merging(spark, lake)
    later._batch(changes(spark, change(seq(3), "c", item(9)), change(seq(7), "c", item(7))), 2, "q")
    assert [n for n, *_ in rows(spark, lake)] == [1, 7]
    later._batch(changes(spark, truncation(seq(5))), 3, "q")
    assert [n for n, *_ in rows(spark, lake)] == [1, 7]
    later._batch(changes(spark, truncation(seq(8), LINES), truncation(seq(9))), 4, "q")
    assert rows(spark, lake) == []


def test_a_truncation_of_a_stopped_table_waits_with_its_changes(spark: SparkSession, lake: Lake) -> None:
    newer = ITEMS.model_copy(update={"version": 9})
    waiting = [change(seq(2), "c", item(2), newer), truncation(seq(5)), change(seq(6), "c", item(3), newer)]
    changes(spark, change(seq(1), "c", item(1)), *waiting).write.format("delta").save(lake.changes)
    merging(spark, lake)._batch(changes(spark, change(seq(1), "c", item(1)), waiting[0]), 0, "q")
    merging(spark, lake)._batch(changes(spark, *waiting[1:]), 1, "q")
    mended = merging(spark, lake, ITEMS, newer)
    mended.retry()
    assert mended.stopped.tables == {}
    assert [n for n, *_ in rows(spark, lake)] == [3]


@pytest.mark.parametrize(("dropped", "stopped"), [(None, True), ((0, 1, 50), False), ((0, 1, 5), True)])
def test_a_table_without_a_key_stops_nothing_any_more_once_the_source_has_dropped_it(
    spark: SparkSession, lake: Lake, dropped: tuple[int, int, int] | None, stopped: bool
) -> None:
    """Unless it was made again since."""
    landed = changes(spark, change(seq(10), "c", item(1), NO_KEY))
    landed.write.format("delta").save(lake.changes)
    step = merging(spark, lake, ITEMS, NO_KEY)
    step.dropped = {("shop", "heap"): dropped} if dropped else {}
    step._batch(landed, 0, "q")
    step.retry()
    assert bool(step.stopped.tables) == bool(merging(spark, lake).stopped.tables) == stopped
