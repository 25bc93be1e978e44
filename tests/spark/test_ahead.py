"""A snapshot that is applied before the lake has come to its end: its table is of no one time, and says so."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contract import status
from contract.pipeline import Pipeline, Tables
from contract.status import TableStatus
from readers.lake import query
from spark.compaction import compaction
from spark.errors import LakeError
from spark.failpoints import hooked
from spark.history.history import History
from spark.lake.lake import Lake
from tests.spark.changes_by_hand import change, changes
from tests.spark.lake_by_hand import AT, NAME, checkpoint, executed, item, seq, stage

END = 1500  # P1's position; the lake's first checkpoint is at 1000
LATER = datetime(2100, 1, 1, tzinfo=UTC)
TOLD = f"they are of one again when the lake has come to {executed(END)}, where the snapshot ended"


@pytest.fixture
def advance(compact: Callable[[], dict[str, Any]], monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Compactions from then on are complete up to there."""

    def to(pos: int) -> None:
        class Later(compaction.Broker):
            def __init__(self, pipeline: Pipeline) -> None:
                super().__init__(pipeline)
                self.checkpoint = lambda: checkpoint(pos)  # type: ignore[method-assign]

        monkeypatch.setattr(compaction, "Broker", Later)

    return to


def standing(pipeline: Pipeline) -> TableStatus:
    found = status.read(pipeline)
    assert found is not None
    return found.tables["shop.items"]


def test_it_is_told_before_the_first_row_of_it_is_there(
    spark: SparkSession, pipeline: Pipeline, lake: Lake, compact: Callable[[], dict[str, Any]]
) -> None:
    land = changes(spark, change(seq(AT + 1), "c", item(1)))
    land.write.format("delta").save(lake.changes)
    compact()
    assert standing(pipeline).doubts() == []
    stage(spark, lake, "1", AT, item(1), item(2), end=END)
    seen: list[TableStatus] = []

    for point in ("snapshot foretold", "snapshot written"):

        def killed(at: str, point: str = point) -> None:
            if at == point:
                seen.append(standing(pipeline))
                raise InterruptedError

        with hooked(killed), pytest.raises(InterruptedError):
            compact()
    for told in seen:
        assert TOLD in str(told.ahead)
        assert told.freshness_ms is None
    with pytest.raises(LakeError, match=r"shop\.items has no past for now"):
        History(spark, lake, *NAME).as_of(LATER)
    compact()
    assert TOLD in str(standing(pipeline).ahead)


def test_a_table_has_no_past_before_a_compaction_came_to_its_end_with_it(
    spark: SparkSession, lake: Lake, compact: Callable[[], dict[str, Any]]
) -> None:
    """Nobody has said by then whether its first snapshot is ahead."""
    landed = changes(spark, change(seq(AT + 1), "c", item(1))).selectExpr("*", "after AS before", "'u:1' AS gtid")
    landed.write.format("delta").save(lake.changes)
    stage(spark, lake, "1", AT, item(1), item(2), end=END)

    def killed(at: str) -> None:
        if at == "snapshot written":
            raise InterruptedError

    with hooked(killed), pytest.raises(InterruptedError):
        compact()
    with pytest.raises(LakeError, match=r"no compaction came to its end with it yet: run the DAG"):
        History(spark, lake, *NAME).as_of(LATER)
    others = Lake(spark, lake.pipeline.model_copy(update={"tables": Tables(include=("shop.others",))}))
    assert History(spark, others, *NAME).as_of(LATER).count() == 2, "of one that is excluded no compaction says more"


def test_it_is_told_until_the_lake_has_come_to_its_end(
    spark: SparkSession,
    pipeline: Pipeline,
    lake: Lake,
    compact: Callable[[], dict[str, Any]],
    advance: Callable[[int], None],
) -> None:
    """Row 2 is of a transaction at 1400, which the lake has not yet: neither is what that did to row 1."""
    landed = changes(spark, change(seq(AT + 1), "u", item(1, "old"))).selectExpr(
        "*", "after AS before", "'u:1' AS gtid"
    )
    landed.write.format("delta").save(lake.changes)
    stage(spark, lake, "1", AT, item(1), item(2, "of 1400"), end=END)
    compact()
    table, history = standing(pipeline), History(spark, lake, *NAME)
    assert table.ahead is not None
    assert (table.doubts(), table.freshness_ms) == ([table.ahead], None)
    assert TOLD in table.ahead
    assert f"run the DAG shop.compaction, or `headrace compact {pipeline.path}`" in table.ahead
    assert query(pipeline, "SELECT id FROM items").doubts == [f"shop.items: {table.ahead}"]
    with pytest.raises(LakeError, match=f"shop.items has no past for now: .*{TOLD}"):
        history.as_of(LATER)
    advance(END - 1)
    compact()
    assert standing(pipeline).ahead == table.ahead
    advance(END)  # without a change: the source has written nothing but other tables' rows
    compact()
    table = standing(pipeline)
    assert (table.doubts(), table.freshness_ms) == ([], checkpoint(END).ts_ms)
    assert sorted(row["id"] for row in history.as_of(LATER).collect()) == [1, 2]
