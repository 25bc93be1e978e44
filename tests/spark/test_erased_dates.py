"""A key that has no value in the lake, as a zero date has none: `_changes` has it, and it goes from there."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract.erased_key import keys_of
from contract.schema import Column, TableSchema, Unfit
from spark.erasing.traces import Traces
from spark.jobs import erase
from spark.lake.lake import Lake
from tests.spark.changes_by_hand import record
from tests.spark.test_erasing import Broker, holding, land, stats  # noqa: F401  a fixture

PLACE = (0, 1, 900)


def visits(version: int, unfit: Unfit = "null", fsp: int = 0) -> TableSchema:
    """From its second version on its moments have digits behind the second."""
    of = (Column(name="at", type="datetime", fsp=fsp, unfit=unfit), Column(name="n", type="int"))
    return TableSchema(db="shop", table="visits", version=version, columns=of, key=("at", "n"))


def found(spark: SparkSession, lake: Lake, unfit: Unfit, *keys: dict[str, Any]) -> list[int]:
    """The offsets of their changes."""
    shapes = [visits(1, unfit), visits(2, unfit, fsp=3)]
    traces = Traces(spark, lake, shapes[-1], shapes, keys_of(json.dumps(keys), shapes[-1]), PLACE)
    assert traces.rows() == 0, "there is no table"
    events = traces.events()
    assert events is not None
    return sorted(row["offset"] for row in events.collect())


def test_their_changes_are_found_by_their_texts_and_no_others(spark: SparkSession, lake: Lake) -> None:
    before, now = visits(1), visits(2, fsp=3)
    zero, late = "0000-00-00 00:00:00", "2026-02-30 10:00:00"
    land(
        spark, lake,
        record(0, (0, 1, 10, 0, 0), "c", {"at": zero, "n": 1}, schema=before),
        record(1, (0, 1, 11, 0, 0), "c", {"at": zero, "n": 2}, schema=before),
        record(2, (0, 1, 12, 0, 0), "u", {"at": f"{zero}.000", "n": 1}, {"at": f"{zero}.000", "n": 1}, schema=now),
        record(3, (0, 1, 13, 0, 0), "c", {"at": f"{late}.500", "n": 1}, schema=now),
        record(4, (0, 1, 14, 0, 0), "d", None, {"at": "2026-01-31 10:00:00.000", "n": 1}, schema=now),
        record(5, (0, 1, 999, 0, 0), "c", {"at": f"{zero}.000", "n": 1}, schema=now),
    )  # fmt: skip
    unfits: tuple[Unfit, ...] = ("null", "fail", "string")
    assert [found(spark, lake, unfit, {"at": zero, "n": 1}) for unfit in unfits] == [[0, 2]] * 3
    assert found(spark, lake, "null", {"at": f"{zero}.000", "n": 1}) == [0, 2], "as records have it"
    assert found(spark, lake, "null", {"at": f"{late}.5", "n": 1}, {"at": "2026-01-31 10:00:00", "n": 1}) == [3, 4]


@pytest.mark.usefixtures("stats")
def test_the_job_takes_one_out_of_a_table_that_it_stops(
    spark: SparkSession, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Broker, "known", [visits(1)])
    rows = [{"at": "0000-00-00 00:00:00", "n": 1}, {"at": "2026-01-31 10:00:00", "n": 2}]
    land(spark, lake, *(record(n, (0, 1, 10 + n, 0, 0), "c", row, schema=visits(1)) for n, row in enumerate(rows)))
    told = erase.erase(spark, lake.pipeline, ["shop.visits"], json.dumps(rows[0]), present="yes", now="yes", by="ada")
    assert told["tables"]["shop.visits"]["changes"] == 1
    assert holding(lake, "0000-00-00") == []
    table = spark.read.format("delta").load(lake.table("shop", "visits"))
    assert [row["n"] for row in table.collect()] == [2], "the table goes on"


@pytest.mark.parametrize("key", [{"at": "0000-00-00 00:00:00", "n": 7}, {"at": "2026-02-30 00:00:00", "n": 1}])
def test_one_that_is_nowhere_is_no_failure(spark: SparkSession, lake: Lake, key: dict[str, Any]) -> None:
    land(spark, lake, record(0, (0, 1, 10, 0, 0), "c", {"at": "0000-00-00 00:00:00", "n": 1}, schema=visits(1)))
    assert found(spark, lake, "null", key) == []
