"""Zero and partial dates in the lake: null and counted, as texts, or a reason to stop the table."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import date, datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract.pipeline import Pipeline
from contract.schema import Column, TableSchema, Unfit
from contract.status import LakeStatus
from spark.compaction import compaction
from spark.errors import LakeError, TableError
from spark.lake.keys import key_json
from spark.lake.lake import Lake
from spark.mending.rebuilt import Rebuild
from spark.merging.handoff import apply_ready
from spark.merging.parts import Chosen
from spark.merging.tables import Merging
from spark.proof.checksum import total
from spark.proof.rewind import Past
from spark.source.choice import shown_of
from spark.tables.rows import placed
from spark.tables.schema import Schemas, landed_otherwise
from tests.spark.changes_by_hand import change as change_of
from tests.spark.changes_by_hand import changes
from tests.spark.lake_by_hand import AT, checkpoint, land, seq, stage, unwatched

COLUMNS = (
    Column(name="id", type="int", nullable=False),
    Column(name="d", type="date"),
    Column(name="at", type="datetime", fsp=3),
    Column(name="seen", type="timestamp"),
    Column(name="span", type="time"),
    Column(name="big", type="decimal", precision=65, scale=1),
)
PEOPLE = TableSchema(db="shop", table="people", version=1, columns=COLUMNS, key=("id",))
DAYS = TableSchema(db="shop", table="days", version=1, columns=(Column(name="d", type="date"),), key=("d",))
NAME = ("shop", "people")
BIG = "9" * 64 + ".5"
GOOD = {"d": "2026-01-02", "at": "2026-01-02 03:04:05.600", "seen": "2026-01-02T03:04:05Z"}
BAD = {"d": "2024-00-10", "at": "0000-00-00 00:00:00.000", "seen": "0000-00-00T00:00:00Z"}


def person(n: int, **facts: Any) -> dict[str, Any]:
    return {"id": n, **GOOD, "span": "-838:59:59", "big": BIG, **facts}


def change(at: tuple[int, ...], op: str, row: dict[str, Any], schema: TableSchema = PEOPLE) -> tuple[Any, ...]:
    return change_of(at, op, row, schema)


def with_setting(pipeline: Pipeline, setting: Unfit) -> Pipeline:
    return pipeline.model_copy(update={"lake": pipeline.lake.model_copy(update={"unrepresentable": setting})})


@pytest.fixture
def lake_of(spark: SparkSession, pipeline: Pipeline) -> Callable[[Unfit], Lake]:
    """The same lake by another pipeline file."""
    return lambda setting: Lake(spark, with_setting(pipeline, setting))


def merging(spark: SparkSession, lake: Lake, *schemas: TableSchema) -> Merging:
    return Merging(spark, lake, Schemas(map(lake.pipeline.lake.lands, schemas or (PEOPLE, DAYS))), unwatched(lake))


def rows(spark: SparkSession, lake: Lake, table: str = "people") -> list[tuple[Any, ...]]:
    frame = spark.read.format("delta").load(lake.table("shop", table)).drop("_seq", "_ts")
    return sorted(map(tuple, frame.collect()), key=str)


def test_they_are_null_and_counted(spark: SparkSession, lake_of: Callable[[Unfit], Lake]) -> None:
    lake = lake_of("null")
    step = merging(spark, lake)
    mixed = person(2, **BAD), person(3, d="2024-02-00", at=None, span="00:00:00", big="-00.5")
    step._batch(changes(spark, change(seq(1), "c", person(1)), *(change(seq(2), "c", one) for one in mixed)), 0, "q")
    [whole, none, some] = rows(spark, lake)
    assert whole[1:3] == (date(2026, 1, 2), datetime(2026, 1, 2, 3, 4, 5, 600_000))
    assert none[1:] == (None, None, None, "-838:59:59", BIG), "what is a text anyway loses nothing"
    assert some[1] is None
    assert step.nulled == {NAME: 4}
    step._batch(changes(spark, change(seq(4), "u", person(2)), change(seq(5), "d", person(3))), 1, "q")
    assert step.nulled == {NAME: 4}, "neither whole dates nor a delete are counted"


def test_as_texts_they_are_whole_also_in_a_key(spark: SparkSession, lake_of: Callable[[Unfit], Lake]) -> None:
    lake = lake_of("string")
    step = merging(spark, lake)
    some = [change(seq(n), "c", {"d": day}, DAYS) for n, day in ((1, "0000-00-00"), (2, "2026-01-02"))]
    step._batch(changes(spark, change(seq(1), "c", person(1)), change(seq(2), "c", person(2, **BAD)), *some), 0, "q")
    step._batch(changes(spark, change(seq(3), "d", {"d": "0000-00-00"}, DAYS)), 1, "q")
    assert (step.stopped.tables, step.nulled) == ({}, {})
    texts = ("-838:59:59", BIG)
    assert rows(spark, lake) == [(1, *GOOD.values(), *texts), (2, *BAD.values(), *texts)]
    assert rows(spark, lake, "days") == [("2026-01-02",)]
    days = spark.read.format("delta").load(lake.table("shop", "days"))
    assert [row[0] for row in days.selectExpr(key_json(lake.pipeline.lake.lands(DAYS))).collect()] == [
        '{"d":"2026-01-02"}'
    ]


@pytest.mark.parametrize(("setting", "left"), [("null", 1), ("string", 3)])
def test_of_the_keys_that_changed_in_a_time_those_are_left_that_the_lake_can_hold(
    spark: SparkSession, lake_of: Callable[[Unfit], Lake], setting: Unfit, left: int
) -> None:
    """A row with such a key may have been there before the snapshot."""
    days = shown_of(lake_of(setting).pipeline, DAYS).schema
    keys = ["0000-00-00", "2026-01-02", "2026-02-30"]
    texts = spark.createDataFrame([(json.dumps({"d": key}),) for key in keys], "key string")
    assert placed(texts, days).count() == left


def test_a_check_winds_the_texts_back(spark: SparkSession, lake_of: Callable[[Unfit], Lake]) -> None:
    """The state before a change is that of its before image, zero dates and all."""
    lake = lake_of("string")
    schema = lake.pipeline.lake.lands(PEOPLE)
    step = merging(spark, lake)
    step._batch(changes(spark, change(seq(1), "c", person(1, **BAD))), 0, "q")
    table = spark.read.format("delta").load(lake.table(*NAME))
    before = total(table, schema)
    update = changes(spark, change(seq(2), "u", person(1)))
    step._batch(update, 1, "q")
    image = changes(spark, change(seq(1), "u", person(1, **BAD))).select("key", "after").toDF("key", "before")
    told = update.join(image, "key").selectExpr("*", "'u:2' as gtid")
    kinds = {name: kind for name, kind in table.dtypes if name not in ("_seq", "_ts")}
    [one] = Past(told, [schema], schema, kinds, (0, 1, 0)).steps((0, 1, 99), lambda _: "0")
    now = total(spark.read.format("delta").load(lake.table(*NAME)), schema)
    assert now != before
    assert now.minus(one.deltas[0]) == before


def test_one_stops_its_table_alone_until_it_is_mended_or_the_setting_is_another(
    spark: SparkSession, lake_of: Callable[[Unfit], Lake], capsys: pytest.CaptureFixture[str]
) -> None:
    lake = lake_of("fail")
    wrong = change(seq(2), "c", person(2, d="2024-00-10"))
    other = PEOPLE.model_copy(update={"table": "others"})
    land(spark, lake, change(seq(1), "c", person(1)), wrong, change(seq(1), "c", person(7), other))
    step = merging(spark, lake, PEOPLE, other)
    step._batch(spark.read.format("delta").load(lake.changes), 0, "q")
    assert [stop.reason for stop in step.stopped.tables.values()] == [
        "shop.people: column d of a row has a value that no type of the lake's can hold (the job's log names the row "
        "and the value), and lake.unrepresentable is fail. Give the row a whole date; or set lake.unrepresentable to "
        "null, or to string and run the snapshot DAG, or `headrace snapshot`, for the table; its changes wait in "
        "_changes meanwhile, and later runs try again"
    ]
    line = 'shop.people: column d of the row {"id":2} is 2024-00-10\n'
    assert capsys.readouterr().out.count(line) == 1, "once, and there alone: a reason goes to alerts, too"
    merging(spark, lake, PEOPLE, other).retry()
    assert line not in capsys.readouterr().out, "a loop tries it in each round"
    assert [row[0] for row in rows(spark, lake, "others")] == [7]
    loose = merging(spark, lake_of("null"), PEOPLE, other)
    loose.retry()
    assert (loose.stopped.tables, loose.nulled, len(rows(spark, lake))) == ({}, {NAME: 1}, 2)


def test_a_row_that_was_mended_lets_the_table_go_on(spark: SparkSession, lake_of: Callable[[Unfit], Lake]) -> None:
    lake = lake_of("fail")
    land(spark, lake, change(seq(1), "c", person(1)), change(seq(2), "c", person(2, **BAD)))
    step = merging(spark, lake)
    step._batch(spark.read.format("delta").load(lake.changes), 0, "q")
    assert NAME in step.stopped.tables
    land(spark, lake, change(seq(3), "u", person(2)))
    later = merging(spark, lake)
    later.retry()
    assert later.stopped.tables == {}
    assert [row[:2] for row in rows(spark, lake)] == [(1, date(2026, 1, 2)), (2, date(2026, 1, 2))]


def test_a_snapshot_ends_before_the_row_is_staged(
    spark: SparkSession, lake_of: Callable[[Unfit], Lake], capsys: pytest.CaptureFixture[str]
) -> None:
    lake = lake_of("fail")
    with pytest.raises(
        LakeError, match=r"column (d|at|seen) of a row has a value that no type .* names the row"
    ) as told:
        stage(spark, lake, "1", AT, person(1), person(2, **BAD), of=PEOPLE)
    assert '"id":2' not in str(told.value)
    assert 'of the row {"id":2} is ' in capsys.readouterr().out
    result = apply_ready(spark, lake)
    assert (result.refused, result.applied) == ({}, set())
    stage(spark, lake, "2", AT, person(1), person(2), of=PEOPLE)
    assert apply_ready(spark, lake).applied == {NAME}
    assert [row[1] for row in rows(spark, lake)] == [date(2026, 1, 2)] * 2


def test_texts_of_a_column_that_was_a_varchar_are_not_the_settings_fault_alone() -> None:
    lake = {"id": "bigint", "d": "string"}
    told = landed_otherwise(DAYS, lake)
    assert told == (
        "shop.days: the lake has texts in d: the source had another type there, or lake.unrepresentable was string, "
        "when the lake's table was made. If it was the setting, put that back; else run the snapshot DAG, or `headrace "
        "snapshot`, for the table"
    )
    assert landed_otherwise(DAYS, {**lake, "d": "date"}) is None


def test_another_setting_waits_for_a_snapshot_which_makes_the_table_anew(
    spark: SparkSession, pipeline: Pipeline, monkeypatch: pytest.MonkeyPatch, lake_of: Callable[[Unfit], Lake]
) -> None:
    """To texts and back, with a change that was merged by the old setting behind the beginning of the snapshot."""
    setting: list[Unfit] = ["null"]

    class Broker:
        def __init__(self, pipeline: Pipeline) -> None:
            self.checkpoint = lambda: checkpoint(1000)
            self.topics = self.topic_ids = self.ends = lambda *_: {}
            self.schemas = lambda: [pipeline.lake.lands(PEOPLE)]
            self.ddl = lambda read: ([], {})
            self.bounds = lambda topic: {}

    monkeypatch.setattr(compaction, "Broker", Broker)

    def compact() -> dict[str, Any]:
        return compaction.compact(spark, with_setting(pipeline, setting[0]))

    lake = lake_of("null")
    land(spark, lake, change(seq(1), "c", person(1, **BAD)))
    land(spark, lake, change(seq(AT + 1), "c", person(3, **BAD)))
    assert compact()["nulled"] == {"shop.people": 6}
    setting[0] = "string"
    land(spark, lake, change(seq(AT + 2), "c", person(4)))
    with pytest.raises(
        Exception, match=r"lake\.unrepresentable was another when the lake's table was made.*d, at, seen"
    ):
        compact()
    assert len(rows(spark, lake)) == 2, "as it was"
    stage(spark, lake, "1", AT, person(1, **BAD), of=PEOPLE)
    with pytest.raises(Exception, match=r"lake\.unrepresentable was another when the snapshot 1 was read"):
        compact()
    stage(spark, lake_of("string"), "2", AT, person(1, **BAD), of=PEOPLE)
    assert compact()["nulled"] == {}
    texts = [BAD, BAD, GOOD]
    assert [(row[0], *row[1:4]) for row in rows(spark, lake)] == [
        (n, *one.values()) for n, one in zip((1, 3, 4), texts, strict=True)
    ]
    setting[0] = "null"
    stage(spark, lake, "3", AT + 10, person(1, **BAD), person(4), of=PEOPLE)
    assert compact()["nulled"] == {"shop.people": 3}
    assert [row[1] for row in rows(spark, lake)] == [None, date(2026, 1, 2)]
    status = lake.read(lake.status)
    assert status["tables"]["shop.people"]["nulled"] == 9


def test_a_backfill_refuses_them_and_tells_no_value(
    spark: SparkSession, lake_of: Callable[[Unfit], Lake], capsys: pytest.CaptureFixture[str]
) -> None:
    lake = lake_of("null")
    stage(spark, lake, "1", 50, person(7), of=PEOPLE)
    apply_ready(spark, lake)
    land(spark, lake, change(seq(AT), "u", person(7, d="2024-00-10")))
    known: dict[str, Any] = {"pipeline": "shop", "run": 1, "written_at": 1, "seconds": 1, "changes_version": 0}
    status, strict = LakeStatus(checkpoint=checkpoint(1000), tables={}, **known), lake_of("fail")
    schemas = Schemas([strict.pipeline.lake.lands(PEOPLE)])
    with pytest.raises(TableError, match=r"lake\.unrepresentable to null, .*Nothing was written$") as error:
        Rebuild(spark, strict, status, schemas, NAME).stage(Chosen("the whole table"))
    assert "2024-00-10" not in str(error.value)
    assert "2024-00-10" in capsys.readouterr().out, "the job's log alone has it"
    assert lake.list(lake.at("_parts")) == []
