"""A row of an order that no change can have is seen, whoever wrote it; one that a change, a snapshot or a repair wrote
is not taken for such a one."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

from contract.sequence import SPARK_TYPE
from spark.proof.unplaced import unplaced

Seq = tuple[int | None, int | None, int | None, int | None, int | None]
READ = (0, 3, 500)


def frame(spark: SparkSession, *places: Seq | None) -> DataFrame:
    return spark.createDataFrame([(place,) for place in places], f"_seq {SPARK_TYPE}")


@pytest.mark.parametrize(
    ("place", "strange"),
    [
        ((0, 3, 500, 7, 1), False),  # of a transaction at the checkpoint
        ((0, 2, 9_000, -1, -1), False),  # of a snapshot
        ((0, 3, 900, 2, 4), False),  # the last change that the lake has
        ((0, 3, 900, 2, 5), True),
        ((1, 1, 4, 0, 0), True),
        ((0, 3, None, 0, 0), True),
        (None, True),
    ],
)
def test_of_a_row(spark: SparkSession, place: Seq | None, strange: bool) -> None:
    changes = frame(spark, (0, 3, 400, 0, 0), (0, 3, 900, 2, 4))
    assert unplaced(frame(spark, (0, 3, 1, 0, 0), place), changes, READ) == strange


def test_of_a_table_without_a_change(spark: SparkSession) -> None:
    for changes in (None, frame(spark)):
        assert not unplaced(frame(spark, (0, 3, 500, 1, 1)), changes, READ)
        assert unplaced(frame(spark, (0, 3, 501, 0, 0)), changes, READ)
