"""A run that ends right behind the move of a first snapshot, killed or on a full disk: the next one finds it in the
table's place, takes nothing of that for somebody else's, and sees who wrote the table since."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from deltalake import DeltaTable
from pyspark.sql import SparkSession

from contract import status
from contract.pipeline import Pipeline
from contract.status import LakeStatus
from spark.failpoints import hooked
from spark.lake.commits import commits
from spark.lake.lake import Lake
from spark.landing.foreign import foreign_writes, since_last
from spark.proof.checksum import Total
from spark.proof.comparing import MADE_ANEW, findings
from spark.proof.finding import Finding
from spark.tables.schema import Schemas
from tests.spark.changes_by_hand import ITEMS, change
from tests.spark.lake_by_hand import AT, NAME, ids, item, land, merge, seq, stage

Compact = Callable[[], dict[str, Any]]
ROWS = [(4, "new"), (5, "newer"), (7, "a")]


def dies(compact: Compact, step: str) -> None:
    def crash(at: str) -> None:
        if at == step:
            raise InterruptedError(step)

    with hooked(crash), pytest.raises(InterruptedError):
        compact()


@pytest.fixture(autouse=True)
def staged(spark: SparkSession, lake: Lake, compact: Compact) -> int | None:
    """The version of a table that has no snapshot yet, before one is applied, whose log is shorter."""
    merged = change(seq(5), "c", item(1)), change(seq(AT + 1), "c", item(7)), change(seq(AT + 2), "u", item(5, "newer"))
    merge(spark, lake, *merged, merged[0], merged[0], merged[0])
    land(spark, lake, *merged)
    compact()
    land(spark, lake, change(seq(AT + 5), "u", item(4, "new")))
    stage(spark, lake, "1", AT, item(4), item(5), item(6))
    land(spark, lake, change(seq(AT + 6), "d", item(6)))
    return lake.version(lake.table(*NAME))


@pytest.mark.soak
def test_the_next_run_notes_it(
    spark: SparkSession, pipeline: Pipeline, lake: Lake, compact: Compact, staged: int
) -> None:
    """The log that was moved has a RESTORE of ours, too."""
    dies(compact, "newer rows taken in")
    dies(compact, "snapshot written")
    path, last = lake.table(*NAME), status.read(pipeline)
    assert last is not None
    assert "RESTORE" in [one.operation for one in commits(lake, path, -1)]
    assert (lake.version(path) or 0) < staged
    assert foreign_writes(lake, since_last(lake, last)).told == {}
    compact()
    table = status.read(pipeline).tables["shop.items"]  # type: ignore[union-attr]
    assert (ids(spark, lake), table.rows, table.doubts()) == (ROWS, 3, [])
    assert (table.snapshot is not None, lake.list(lake.at("_staging"))) == (True, [])


@pytest.mark.soak  # half a minute
def test_what_somebody_did_since_is_told_until_another_snapshot(
    spark: SparkSession, lake: Lake, compact: Compact
) -> None:
    dies(compact, "snapshot written")
    DeltaTable(lake.table(*NAME)).delete("id = 5")
    dies(compact, "snapshot noted")
    report = compact()["tables"]["shop.items"]
    assert "DELETE as version" in report["foreign"]
    assert (report["rows"], report["snapshot"]) == (2, True)
    stage(spark, lake, "2", AT + 1, item(4), item(5), item(7))
    assert compact()["tables"]["shop.items"]["foreign"] is None
    assert ids(spark, lake) == ROWS


@pytest.mark.soak  # half a minute
def test_another_snapshot_behind_it_takes_the_tables_own_rows(
    spark: SparkSession, lake: Lake, compact: Compact
) -> None:
    """In the same run. Where they were doubted, the table was stopped and merged anew."""
    stage(spark, lake, "2", AT + 1, item(4), item(5), item(7))
    reached: list[str] = []
    with hooked(reached.append):
        report = compact()["tables"]["shop.items"]
    assert (ids(spark, lake), report["foreign"]) == (ROWS, None)
    assert "table made way" in reached
    assert {"table stopped", "table released"}.isdisjoint(reached)


def test_a_check_that_goes_by_the_status_of_before_takes_none_of_it_for_a_difference(
    pipeline: Pipeline, lake: Lake, compact: Compact
) -> None:
    last, wrong = status.read(pipeline), Finding(Total(2, 2), None, 1, 0.0, wrong=frozenset({0}))
    assert last is not None
    answer: Any = SimpleNamespace(name="shop.items", schema=ITEMS)
    check: Any = SimpleNamespace(lake=lake, spark=lake.spark, compare=lambda *_: wrong)

    def found(by: LakeStatus) -> Finding:
        check.lost = set[str]()
        [one] = findings(check, [answer], by, Schemas([ITEMS]))
        assert check.lost == (set() if one is wrong else {"shop.items"})
        return one

    assert found(last) is wrong
    dies(compact, "snapshot written")
    assert found(last).reason == MADE_ANEW
    compact()
    assert found(last).reason == MADE_ANEW
    now = status.read(pipeline)
    assert now is not None
    assert found(now) is wrong
