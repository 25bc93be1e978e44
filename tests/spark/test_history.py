"""The past of a table, from a lake made by hand."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract.sequence import SPARK_TYPE
from contract.status import LakeStatus, TableStatus
from spark.errors import LakeError
from spark.history.history import History, views
from spark.lake.lake import Lake
from spark.lake.lost import Loss, Losses
from tests.spark.changes_by_hand import compact_json

CHANGE = (
    "db string, tbl string, key string, op string, before string, after string, schema int, "
    f"_seq {SPARK_TYPE}, gtid string, ts timestamp"
)
ROWS = f"id bigint, name string, price decimal(10,2), sold timestamp, raw binary, _seq {SPARK_TYPE}, _ts timestamp"


def at(minute: int) -> datetime:
    return datetime(2026, 11, 22, 10, minute, tzinfo=UTC)


def image(id: int, name: str | None, price: str = "1.50") -> dict[str, Any]:
    return {"id": id, "name": name, "price": price, "sold": "2026-01-01T00:00:00.5Z", "raw": "AP8="}


def change(minute: int, op: str, before: dict[str, Any] | None, after: dict[str, Any] | None) -> tuple[Any, ...]:
    row = after or before
    key = compact_json({"id": row["id"]}) if row else None
    texts = [compact_json(one) if one else None for one in (before, after)]
    return "shop", "shop.items", key, op, *texts, 1, (0, 1, minute, 0, 0), f"u:{minute}", at(minute)


CHANGES = [
    change(10, "u", image(1, "a"), image(1, "b")),
    change(20, "c", None, image(2, "new")),
    change(30, "u", image(1, "b"), image(1, "c", "2.00")),
    change(40, "d", image(3, "gone"), None),
    change(50, "d", image(2, "new"), None),
]


def make(spark: SparkSession, lake: Lake, changes: list[tuple[Any, ...]] = CHANGES) -> History:
    """Rows 1 and 4 are there now; 4 was never changed."""
    spark.createDataFrame(changes, CHANGE).write.format("delta").partitionBy("tbl").save(lake.changes)
    place, sold = (0, 1, 5, -1, -1), datetime(2026, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC)
    rows = [(1, "c", 2, sold, b"\x00\xff", place, at(30)), (4, "still", 1.5, sold, b"\x00\xff", place, at(5))]
    made = spark.createDataFrame(
        [(*row[:2], str(row[2]), *row[3:]) for row in rows], ROWS.replace("decimal(10,2)", "string")
    )
    made = made.withColumn("price", made["price"].cast("decimal(10,2)"))
    made.write.format("delta").save(lake.table("shop", "items"))
    return History(spark, lake, "shop", "items")


@pytest.fixture
def history(spark: SparkSession, lake: Lake) -> History:
    return make(spark, lake)


def test_rows_that_were_mended_from_the_source_since_are_told(
    spark: SparkSession, lake: Lake, history: History, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = [("items", 4, "mysql"), ("items", 1, "changes"), ("other", 7, "mysql")]
    repairs = [("shop", f"shop.{table}", compact_json({"id": id}), source, at(52)) for table, id, source in facts]
    made = spark.createDataFrame(repairs, "db string, tbl string, key string, source string, at timestamp")
    made.write.format("delta").save(lake.at("_repairs"))
    assert history.as_of(at(52)).count() == 2
    assert capsys.readouterr().err == ""
    assert history.as_of(at(50)).count() == 2
    assert capsys.readouterr().err.startswith("shop.items as of 2026-11-22T10:50:00+00:00: 1 row was mended from the")


def test_what_speaks_against_the_table_is_told_of_its_past_too(
    lake: Lake, history: History, capsys: pytest.CaptureFixture[str]
) -> None:
    table = TableStatus(db="shop", table="items", rows=2, changes=5, unequal="a record of it was put aside")
    status = LakeStatus(
        pipeline="shop",
        run=1,
        written_at=1,
        seconds=1,
        checkpoint=None,
        changes_version=0,
        tables={"shop.items": table},
    )
    lake.write(lake.status, status.model_dump(mode="json"))
    history.as_of(at(50))
    history.versions()
    assert capsys.readouterr().err.splitlines() == ["shop.items: a record of it was put aside"] * 2


def test_statements_that_altered_the_table_since_are_told(
    spark: SparkSession, lake: Lake, history: History, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = [
        ("items", "shape", "ALTER TABLE items DROP COLUMN v"),
        ("items", "harmless", "ALTER TABLE items COMMENT = 'x'"),
        ("items", "shape", "create table items (id int)"),
        ("other", "alter", "ALTER TABLE other DROP COLUMN v"),
    ]
    noted = [(f"{n}", "shop", *one, at(52)) for n, one in enumerate(facts)]
    made = spark.createDataFrame(noted, "id string, db string, tbl string, kind string, statement string, ts timestamp")
    made.write.format("delta").save(lake.at("_schema_changes"))
    history.as_of(at(52))
    assert capsys.readouterr().err == ""
    history.as_of(at(50))
    assert capsys.readouterr().err.startswith(
        "shop.items as of 2026-11-22T10:50:00+00:00: a statement altered it later"
    )


@pytest.mark.parametrize(
    ("minute", "names"),
    [
        (10, {1: "b", 3: "gone", 4: "still"}),
        (25, {1: "b", 2: "new", 3: "gone", 4: "still"}),
        (30, {1: "c", 2: "new", 3: "gone", 4: "still"}),
        (59, {1: "c", 4: "still"}),
    ],
)
def test_the_table_as_of_a_time(history: History, minute: int, names: dict[int, str]) -> None:
    rows = {row["id"]: row for row in history.as_of(at(minute)).collect()}
    assert {number: row["name"] for number, row in rows.items()} == names
    assert {str(row["price"]) for row in rows.values()} <= {"1.50", "2.00"}
    assert {bytes(row["raw"]) for row in rows.values()} == {b"\x00\xff"}
    assert len({row["sold"] for row in rows.values()}) == 1, "by the changes and by the table the same"


def test_every_version_of_a_row_says_from_when_to_when(history: History) -> None:
    found = {
        (row["id"], row["name"], row["valid_from"] and row["valid_from"].astimezone(UTC).minute,
         row["valid_to"] and row["valid_to"].astimezone(UTC).minute, row["gtid"])
        for row in history.versions().collect()
    }  # fmt: skip
    assert found == {
        (1, "a", None, 10, None), (1, "b", 10, 30, "u:10"), (1, "c", 30, None, "u:30"), (2, "new", 20, 50, "u:20"),
        (3, "gone", None, 40, None), (4, "still", None, None, None),
    }  # fmt: skip


def test_what_each_transaction_changed(history: History) -> None:
    found = [(row["gtid"], row["op"], row["changed"], row["key"]) for row in history.changes().collect()]
    assert found[0] == ("u:10", "u", ["name"], '{"id":1}')
    assert found[2][2] == ["name", "price"]
    assert [one[1] for one in found] == ["u", "c", "u", "d", "d"]
    assert history.changes().where("op = 'd'").select("after").first()[0] is None


def test_views_by_name(spark: SparkSession, lake: Lake, history: History) -> None:
    assert views(spark, lake, [("shop", "items")]) == ["items", "items_history", "items_changes"]
    told = spark.sql("SELECT count(*) FROM items_history WHERE valid_to IS NULL").first()
    assert told is not None
    assert told[0] == 2


def test_a_view_takes_no_tables_name(spark: SparkSession, lake: Lake, history: History) -> None:
    spark.range(1).selectExpr("id", "'own' AS valid_from", "1 AS _seq", "1 AS _ts").write.format("delta").save(
        lake.table("shop", "items_History")
    )
    wanted = [("shop", "items"), ("shop", "items_History")]
    made = views(spark, lake, wanted)
    assert made[:3] == ["items", "_items_history", "items_changes"]
    assert spark.sql("SELECT valid_from FROM items_history").collect() == [("own",)]
    assert spark.sql("SELECT * FROM items_history_history").columns == [
        "id", "valid_from", "_valid_from", "valid_to", "gtid",
    ]  # fmt: skip
    assert spark.sql("SELECT * FROM _items_history WHERE valid_to IS NULL").count() == 2
    with pytest.raises(LakeError, match=r"several of these are items: make one's"):
        views(spark, lake, [*wanted, ("other", "ITEMS")])


def test_what_cannot_be_known_is_said(spark: SparkSession, lake: Lake, history: History) -> None:
    with pytest.raises(LakeError, match=r"history of shop\.items begins 2026-11-22T10:10"):
        history.as_of(at(9))
    with pytest.raises(LakeError, match="has no time zone"):
        history.as_of(datetime(2026, 11, 22))
    with pytest.raises(LakeError, match=r"no table shop\.nothing"):
        History(spark, lake, "shop", "nothing").now()
    cut = [(*change(55, "t", None, None)[:2], None, *change(55, "t", None, None)[3:])]
    # Each partition of the topic has it.
    spark.createDataFrame(cut * 2, CHANGE).write.format("delta").mode("append").save(lake.changes)
    with pytest.raises(LakeError, match=r"shop\.items was truncated after"):
        history.as_of(at(40))
    assert history.changes().where("op = 't'").count() == 1
    ended = history.versions().where("id = 1 and name = 'c'").first()
    assert ended is not None
    assert ended["valid_to"].astimezone(UTC) == at(55)


def test_the_past_begins_behind_the_changes_that_kafka_had_no_more(lake: Lake, history: History) -> None:
    statements, other = Loss(topic="shop.ddl", partition=0, until=[0, 1, 90, -1, -1], everywhere=True), [0, 1, 80, 0, 0]
    mine = [Loss(topic="shop.shop.items", partition=n, until=[0, 1, pos, 0, 0]) for n, pos in enumerate((20, 15))]
    Losses(lake).note([statements, Loss(topic="shop.shop.others", partition=0, until=other), *mine])
    with pytest.raises(LakeError, match=r"history of shop\.items begins 2026-11-22T10:20"):
        history.as_of(at(19))
    assert {row["id"] for row in history.as_of(at(25)).collect()} == {1, 2, 3, 4}
    Losses(lake).note([Loss(topic="shop.shop.items", partition=2, until=[0, 1, 60, -1, -1])])
    with pytest.raises(LakeError, match=r"history of shop\.items begins with the next change"):
        history.as_of(at(59))


def test_a_renamed_column_has_its_values_in_the_changes_before(spark: SparkSession, lake: Lake) -> None:
    """By the names of three times; a later column of the first name is another one."""
    renames = [
        {"db": "shop", "table": "items", "version": version, "seq": [0, 1, version], "columns": [pair]}
        for version, *pair in ((2, "first", "second"), (4, "second", "name"))
    ]
    lake.write(lake.at("_evolution.json"), {"renames": renames})
    others = ("first", '"first":"other","second"', '"first":"other","second"', '"first":"other","name"')
    found = []
    for version, (one, other) in enumerate(zip(CHANGES, (*others, others[-1]), strict=True), 1):
        texts = [text and text.replace('"name"', other if other != "first" else '"first"') for text in one[4:6]]
        found.append((*one[:4], *texts, version, *one[7:]))
    history = make(spark, lake, found)
    assert {tuple(row[:2]) for row in history.as_of(at(15)).collect()} == {(1, "b"), (3, "gone"), (4, "still")}
    told = [(row["before"], row["after"], row["changed"]) for row in history.changes().collect()]
    names = [(before and before["name"], after and after["name"]) for before, after, _ in told]
    assert names == [("a", "b"), (None, "new"), ("b", "c"), ("gone", None), ("new", None)]
    assert told[0][-1] == ["name"]


def test_a_name_that_another_column_had_before_shows_each_its_own_values(spark: SparkSession, lake: Lake) -> None:
    told = [
        {"db": "shop", "table": "items", "version": version, "seq": [0, 1, version], "columns": [pair]}
        for version, *pair in ((2, "name", "other"), (3, "fresh", "name"))
    ]
    lake.write(lake.at("_evolution.json"), {"renames": told})
    texts = [compact_json({"id": 1, "fresh": fresh, "name": "n"}) for fresh in ("f", "g")]
    row = ("shop", "shop.items", '{"id":1}', "u", *texts, 1, (0, 1, 1, 0, 0), "u:1", at(10))
    spark.createDataFrame([row], CHANGE).write.format("delta").partitionBy("tbl").save(lake.changes)
    now = spark.createDataFrame(
        [(1, "g", "n", (0, 1, 1, 0, 0), at(10))],
        f"id bigint, name string, other string, _seq {SPARK_TYPE}, _ts timestamp",
    )
    now.write.format("delta").save(lake.table("shop", "items"))
    [change] = History(spark, lake, "shop", "items").changes().collect()
    assert [(image["name"], image["other"]) for image in (change["before"], change["after"])] == [
        ("f", "n"),
        ("g", "n"),
    ]
    assert change["changed"] == ["name"]
