"""What a new epoch sends again lands once, and nothing that it sends for the first time is taken for known."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract.pipeline import Pipeline
from spark.kafka.epochs import first_sent
from spark.lake.lake import Lake
from spark.landing import changes
from spark.landing.changes import Landing
from spark.landing.marks import Marks
from tests.spark.changes_by_hand import record, records

Found = list[tuple[int, int]]
DAY = 86_400_000


def sent(offset: int, epoch: int, n: int, more: int = 0, **given: Any) -> tuple[Any, ...]:
    """Transaction n, which sets row 1: in epoch 1 at another place of another binlog. `more` is added to its time."""
    value = {"op": "u", "before": {"id": 1, "name": f"v{n - 1}"}, "after": {"id": 1, "name": f"v{n}"}} | given
    made = record(offset, (epoch, 7 - epoch, 1000 * epoch + n, 0, 0), **value)
    key, text, *rest = made
    told = json.loads(text)
    told["source"] |= {"gtid": given_gtid(n), "ts_ms": 1_700_000_000_000 + 1000 * n + more}
    return key, json.dumps(told, separators=(",", ":")).encode(), *rest


def given_gtid(n: int) -> str | None:
    return f"u:{n}" if n < 900 else None


@pytest.fixture
def land(spark: SparkSession, pipeline: Pipeline, lake: Lake) -> Any:
    numbers = iter(range(100))

    def batch(*rows: tuple[Any, ...]) -> int:
        landing = Landing(spark, pipeline, lake)
        landing._batch(records(spark, *rows), next(numbers), "q")
        return landing.landed

    return batch


def landed(spark: SparkSession, lake: Lake) -> Found:
    """(epoch, transaction) of every change in the lake, in order."""
    found = spark.read.format("delta").load(lake.changes).select("_seq.epoch", "_seq.pos").collect()
    return sorted((row["epoch"], row["pos"] % 1000) for row in found)


def test_what_an_older_epoch_sent_lands_once_batch_by_batch(land: Any, spark: SparkSession, lake: Lake) -> None:
    land(*(sent(n, 0, n) for n in range(1, 6)))
    # A run between the two halves moves no row back; a MariaDB's replica may tell another commit time.
    assert land(sent(6, 1, 3, more=DAY), sent(7, 1, 4)) == 0
    assert landed(spark, lake) == [(0, n) for n in range(1, 6)]
    assert land(sent(8, 1, 5), sent(9, 1, 6)) == 1
    assert land(sent(10, 1, 7)) == 1
    assert landed(spark, lake) == [*((0, n) for n in range(1, 6)), (1, 6), (1, 7)]


def test_both_epochs_in_one_batch(land: Any, spark: SparkSession, lake: Lake) -> None:
    assert land(sent(1, 0, 1), sent(2, 0, 2), sent(3, 1, 1), sent(4, 1, 2), sent(5, 1, 3)) == 3
    assert landed(spark, lake) == [(0, 1), (0, 2), (1, 3)]
    assert land(sent(6, 1, 3), sent(7, 2, 2), sent(8, 2, 3), sent(9, 2, 4)) == 1
    assert landed(spark, lake) == [(0, 1), (0, 2), (1, 3), (2, 4)]


def test_a_batch_that_comes_again_and_one_of_a_new_checkpoint(
    spark: SparkSession, pipeline: Pipeline, lake: Lake
) -> None:
    landing = Landing(spark, pipeline, lake)
    one, two = [sent(1, 0, 1), sent(2, 0, 2)], [sent(3, 1, 2), sent(4, 1, 3)]
    for rows, number in ((one, 0), (two, 1), (two, 1)):
        landing._batch(records(spark, *rows), number, "q")
    assert landed(spark, lake) == [(0, 1), (0, 2), (1, 3)]
    landing._batch(records(spark, *one, *two, sent(5, 1, 4)), 0, "another")
    assert landed(spark, lake) == [(0, 1), (0, 2), (1, 3), (1, 4)]


def test_what_only_looks_alike_is_no_repeat(land: Any, spark: SparkSession, lake: Lake) -> None:
    land(sent(3, 0, 3), sent(4, 0, 4), sent(5, 0, 5), sent(6, 0, 901))
    other_rows = {"before": {"id": 1, "name": "v3"}, "after": {"id": 1, "name": "other"}}
    fresh = [
        sent(8, 1, 4, **other_rows),  # one that divides the transaction otherwise
        sent(9, 1, 901),  # without a GTID nobody can tell
        sent(9, 1, 5, partition=1),
    ]
    assert land(*fresh) == len(fresh)


def test_what_comes_behind_a_change_that_says_something_else_the_second_time_lands_too(
    land: Any, spark: SparkSession, lake: Lake
) -> None:
    """Else the row would go back to the first change's state for good."""
    other = {"op": "c", "before": None, "after": {"id": 1, "name": "salted anew"}}
    land(sent(1, 0, 1, **other | {"after": {"id": 1, "name": "salted"}}), sent(2, 0, 2), sent(3, 0, 3))
    of_another = {"before": {"id": 2, "name": "a"}, "after": {"id": 2, "name": "b"}}
    land(sent(4, 0, 4, **of_another))
    assert land(sent(5, 1, 1, **other), sent(6, 1, 2), sent(7, 1, 4, **of_another)) == 2
    assert land(sent(8, 1, 3), sent(9, 2, 4, **of_another)) == 1
    assert landed(spark, lake) == [(0, 1), (0, 2), (0, 3), (0, 4), (1, 1), (1, 2), (1, 3)]


def test_a_truncation_that_comes_again_empties_nothing_that_is_behind_it(
    land: Any, spark: SparkSession, lake: Lake
) -> None:
    """Its record in partition 1 is the first there and deletes all that is older: so what partition 0 has behind its
    own record must be of the new epoch as well."""

    def truncation(offset: int, epoch: int, partition: int) -> tuple[Any, ...]:
        none = {"before": None, "after": {"id": 0}, "op": "t", "partition": partition}
        _, text, *rest = sent(offset, epoch, 2, **none)
        value = json.loads(text) | {"after": None}
        return None, json.dumps(value).encode(), *rest

    land(sent(1, 0, 1), truncation(2, 0, 0), sent(3, 0, 3))
    assert land(sent(4, 1, 1), truncation(5, 1, 0)) == 1
    assert land(sent(6, 1, 3), sent(7, 1, 4), truncation(1, 1, 1)) == 3
    assert landed(spark, lake) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 2), (1, 3), (1, 4)]


def test_the_lake_is_searched_only_where_something_may_come_again(
    land: Any, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    searched = []

    def spy(*given: Any) -> Any:
        searched.append(1)
        return first_sent(*given)

    monkeypatch.setattr(changes, "first_sent", spy)
    land(sent(1, 0, 1), sent(2, 0, 2), sent(1, 0, 5, partition=1))
    land(sent(3, 0, 3))
    land(sent(4, 1, 4, more=2 * DAY), sent(5, 1, 6, more=2 * DAY))  # a partition that rested: all of it is newer
    land(sent(6, 1, 7))
    assert searched == []
    assert land(sent(2, 1, 5, partition=1)) == 0
    assert searched == [1]
    assert Marks(lake, "q").before(99)[1].last == 1_700_000_005_000
