"""The past of a table of which columns have the names that others had before. In Spark and in DuckDB."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pyspark.sql import SparkSession

from contract.pipeline import Pipeline
from contract.sequence import SPARK_TYPE
from contract.status import LakeStatus, TableStatus
from readers.lake import query
from spark.history.history import History
from spark.lake.lake import Lake
from tests.spark.changes_by_hand import compact_json
from tests.spark.test_history import CHANGE, at

POINT = {"wkb": "AQ==", "srid": 4326}
COLUMNS = "id bigint, n bigint, p struct<wkb:binary,srid:bigint>, s string, v array<float>"
READ = "id, n, p.srid, s, v"
NOW, STILL = (1, 7, 4326, "x", [0.5]), (2, None, 4326, "x", [0.5])
OF = {"db": "shop", "table": "items"}
Image = dict[str, Any]


def text(image: Image) -> str:
    return compact_json({"id": 1, **image})


def made(spark: SparkSession, lake: Lake, evolution: dict[str, Any], *told: tuple[int, Image, Image]) -> History:
    """`told`: the changes of one row, each with the version of the table's shape; beside it is one that was never
    changed."""
    lake.write(lake.at("_evolution.json"), evolution)
    changes = [
        ("shop", "shop.items", '{"id":1}', "u", *map(text, images), version, (0, 1, n, 0, 0), f"u:{n}", at(n))
        for n, (version, *images) in enumerate(told)
    ]
    spark.createDataFrame(changes, CHANGE).write.format("delta").partitionBy("tbl").save(lake.changes)
    rows = [(id, n, (b"\1", 4326), "x", [0.5], (0, 1, 9, 0, 0), at(9)) for id, n in ((1, 7), (2, None))]
    table = spark.createDataFrame(rows, f"{COLUMNS}, _seq {SPARK_TYPE}, _ts timestamp")
    table.write.format("delta").save(lake.table("shop", "items"))
    tables = {"shop.items": TableStatus(db="shop", table="items", rows=2, changes=len(changes), version=0)}
    facts: dict[str, Any] = {"run": 1, "written_at": 0, "seconds": 1, "checkpoint": None, "changes_version": 0}
    lake.write(lake.status, LakeStatus(pipeline="shop", tables=tables, **facts).model_dump(mode="json"))
    return History(spark, lake, "shop", "items")


def past(pipeline: Pipeline, history: History, moment: datetime | None = None) -> list[tuple[Any, ...]]:
    """Of each row of a time, or of each version, what it READ; the same by both."""
    rows = history.as_of(moment) if moment else history.versions()
    found = sorted(map(tuple, rows.selectExpr(*READ.split(", ")).collect()), key=repr)
    asked = f"items_as_of('{moment.isoformat()}')" if moment else "items_history"
    assert sorted(query(pipeline, f"SELECT {READ} FROM {asked}").rows(), key=repr) == found
    return found


def test_behind_a_rename_the_old_name_is_a_new_columns(spark: SparkSession, lake: Lake, pipeline: Pipeline) -> None:
    """Of another type, and with other letters, too."""
    renames = [{**OF, "version": 2, "seq": [0, 1, 2], "columns": [["N", "s"], ["p", "v"]]}]
    history = made(
        spark, lake, {"renames": renames},
        (1, {"N": "one", "p": [0.25]}, {"N": "two", "p": [0.25]}),
        (1, {"N": "two", "p": [0.25]}, {"N": "two", "p": [0.5]}),
        (3, {"s": "two", "v": [0.5]}, {"s": "x", "v": [0.5], "n": 7, "p": POINT}),
    )  # fmt: skip
    first, second, third = [(1, None, None, *one) for one in (("one", [0.25]), ("two", [0.25]), ("two", [0.5]))]
    assert past(pipeline, history, at(0)) == [second, STILL]
    assert past(pipeline, history) == sorted([first, second, third, NOW, STILL], key=repr)


def test_a_column_that_came_back_has_no_values_of_another_form(
    spark: SparkSession, lake: Lake, pipeline: Pipeline
) -> None:
    broken = [{**OF, "seq": [0, 1, 2], "ends": False, "version": 3, "columns": ["n", "p", "v"]}]
    gone = {"p": "none", "s": "x", "v": "AQ=="}
    history = made(
        spark, lake, {"breaks": broken},
        (1, {**gone, "n": "five"}, {**gone, "n": "six"}), (3, {"s": "x"}, {"n": 7, "p": POINT, "s": "x", "v": [0.5]}),
    )  # fmt: skip
    unread = (1, None, None, "x", None)
    assert past(pipeline, history) == sorted([NOW, STILL, unread, unread], key=repr)
